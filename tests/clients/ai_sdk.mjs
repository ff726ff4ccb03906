// Driver of the AI SDK: `node ai_sdk.mjs PROVIDER JOB`, where JOB is JSON (address, model, questions, what the tool
// finds). Prints, like the drivers in Python, what the client showed of each case. It judges nothing.
import { APICallError, Output, generateText, isStepCount, jsonSchema, streamText, tool } from 'ai';
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';

const [provider, job] = [process.argv[2], JSON.parse(process.argv[3])];
const settings = { name: 'gateway', baseURL: `${job.url}/v1`, apiKey: job.key };
const model = {
  // Responses, with its defaults: replies are stored, and the second step refers to items by id.
  openai: () => createOpenAI(settings)(job.model),
  compatible: () => createOpenAICompatible({ ...settings, supportsStructuredOutputs: true })(job.model),
  anthropic: () => createAnthropic(settings)(job.model),
}[provider]();
const find = tool({
  description: 'find a city',
  inputSchema: jsonSchema(job.parameters),
  execute: async ({ query }) => job.found[query],
});

function question(name) {
  return { model, prompt: job.questions[name], maxRetries: 0 };
}

async function attempt(go) {
  try {
    return await go();
  } catch (error) {
    console.error(error);
    return [{ failed: String(error) }];
  }
}

async function plain() {
  const whole = await generateText(question('plain'));
  const streamed = streamText({ ...question('plain'), onError: () => {} });
  return [
    { thinking: whole.reasoningText ?? '', text: whole.text },
    { thinking: (await streamed.reasoningText) ?? '', text: await streamed.text },
  ];
}

async function calls() {
  const result = await generateText({ ...question('calls'), tools: { find }, stopWhen: isStepCount(3) });
  const made = result.steps.flatMap((step) => step.toolCalls).map((call) => [call.toolName, call.input]);
  return [{ thinking: result.steps[0].reasoningText ?? '', text: result.text, calls: made }];
}

async function structured() {
  const result = await generateText({
    ...question('structured'),
    output: Output.object({ schema: jsonSchema(job.schema) }),
  });
  return [{ value: result.output }];
}

async function refusal(name) {
  try {
    await generateText(question(name));
  } catch (error) {
    const errors = APICallError.isInstance(error) ? ['APICallError'] : [error.name];
    return [{ errors, status: error.statusCode ?? null, message: error.message }];
  }
  return [{ failed: 'no error was raised' }];
}

console.log(
  JSON.stringify({
    plain: await attempt(plain),
    calls: await attempt(calls),
    structured: await attempt(structured),
    limited: await refusal('limited'),
    refused: await refusal('refused'),
  }),
);
