// A splitter as many programs have one, for run.mjs: one block of thinking, the rest is the answer. It fails the cases it should.

import { createInterface } from "node:readline";

for await (const line of createInterface({ input: process.stdin })) {
  const { chunks, start } = JSON.parse(line);
  let text = chunks.join("");
  const parts = [];
  if (start === "thinking" && !text.includes("<think>")) text = "<think>" + text;
  const open = text.indexOf("<think>");
  const close = text.indexOf("</think>");
  if (open >= 0 && close > open) {
    parts.push({ thinking: text.slice(open + "<think>".length, close).trim() });
    text = text.slice(0, open) + text.slice(close + "</think>".length);
  }
  text = text.replace("<|im_end|>", "").trim();
  if (text) parts.push({ text });
  console.log(JSON.stringify({ parts }));
}
