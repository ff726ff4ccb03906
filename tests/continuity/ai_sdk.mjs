// The AI SDK in a conversation with calls and two more questions: `node ai_sdk.mjs PROVIDER JOB`, where JOB is JSON
// (address, key, model, questions). Prints the answers as a list. It judges nothing.
import { generateText, isStepCount, jsonSchema, tool } from 'ai';
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';

const [provider, job] = [process.argv[2], JSON.parse(process.argv[3])];
const settings = { name: 'gateway', baseURL: `${job.url}/v1`, apiKey: job.key };
const model = {
  openai: () => createOpenAI(settings)(job.model),
  compatible: () => createOpenAICompatible(settings)(job.model),
  anthropic: () => createAnthropic(settings)(job.model),
}[provider]();
const find = tool({
  description: 'find something',
  inputSchema: jsonSchema({ type: 'object', properties: { query: { type: 'string' }, limit: { type: 'integer' } } }),
  execute: async ({ query }) => `found ${query}`,
});
const messages = [];
const answers = [];
for (const question of job.questions) {
  messages.push({ role: 'user', content: question });
  const result = await generateText({ model, messages, tools: { find }, stopWhen: isStepCount(3), maxRetries: 0 });
  messages.push(...result.steps.flatMap((step) => step.response.messages));
  answers.push(result.text);
}
console.log(JSON.stringify(answers));
