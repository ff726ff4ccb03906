"""Placeholders until the call syntaxes are here."""

from __future__ import annotations

from ..engine.calls.json_calls import JsonCalls
QWEN_XML = JsonCalls(open=('<stub:QWEN_XML>',), close=('</stub:QWEN_XML>',))
SEED_XML = JsonCalls(open=('<stub:SEED_XML>',), close=('</stub:SEED_XML>',))
MINIMAX_M2 = JsonCalls(open=('<stub:MINIMAX_M2>',), close=('</stub:MINIMAX_M2>',))
DOTS_XML = JsonCalls(open=('<stub:DOTS_XML>',), close=('</stub:DOTS_XML>',))
MINICPM = JsonCalls(open=('<stub:MINICPM>',), close=('</stub:MINICPM>',))
DSML_V32 = JsonCalls(open=('<stub:DSML_V32>',), close=('</stub:DSML_V32>',))
DSML_V4 = JsonCalls(open=('<stub:DSML_V4>',), close=('</stub:DSML_V4>',))
STEPTML = JsonCalls(open=('<stub:STEPTML>',), close=('</stub:STEPTML>',))
ATEM = JsonCalls(open=('<stub:ATEM>',), close=('</stub:ATEM>',))
MINIMAX_M3 = JsonCalls(open=('<stub:MINIMAX_M3>',), close=('</stub:MINIMAX_M3>',))
KIMI_K3 = JsonCalls(open=('<stub:KIMI_K3>',), close=('</stub:KIMI_K3>',))
GLM = JsonCalls(open=('<stub:GLM>',), close=('</stub:GLM>',))
def hunyuan_keyed(suffix):
    return JsonCalls(open=(f"<tool_calls{suffix}>",), close=(f"</tool_calls{suffix}>",))
