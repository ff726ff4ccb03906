// Where a question is written. Its text is its own state, so that typing draws nothing else.

import { Icon } from "./icon.js";
import { Dialog, Message } from "./parts.js";
import { html, useEffect, useRef, useState } from "./ui.js";

// Where nothing is known of a model, what most take; where it has no efforts, thinking is still turned off or on.
const named = (effort) => [effort, `effort: ${effort}`];
const USUAL = ["none", "low", "medium", "high"].map(named);
const SWITCH = [
  ["none", "thinking: off"],
  ["high", "thinking: on"],
];

// The choices for a model, beside its own default, and what the address names: what is sent, and its name.
function effortsOf(model, chosen) {
  const known = !model?.efforts ? USUAL : model.efforts.length ? model.efforts.map(named) : SWITCH;
  return !chosen || known.some(([effort]) => effort === chosen) ? known : [...known, named(chosen)];
}
const LARGEST_IMAGE = 8 * 1024 * 1024;

export const WEATHER = [
  {
    type: "function",
    function: {
      name: "get_weather",
      description: "The weather in a city, now.",
      parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
    },
  },
];

function readImage(file) {
  return new Promise((resolve) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.readAsDataURL(file);
  });
}

// Tool definitions from text; an error in words where they are none.
function readTools(text) {
  if (!text.trim()) return [];
  const tools = JSON.parse(text);
  if (!Array.isArray(tools)) throw new Error("a list is needed: [{...}, ...]");
  return tools;
}

// The system prompt and the tools.
function Options({ system, tools, choose, setTools, onClose }) {
  const [text, setText] = useState(tools.length ? JSON.stringify(tools, null, 2) : "");
  const [prompt, setPrompt] = useState(system);
  const [problem, setProblem] = useState("");
  const save = (event) => {
    event.preventDefault();
    try {
      setTools(readTools(text));
    } catch (error) {
      return setProblem(`The tools cannot be read: ${error.message}`);
    }
    choose({ system: prompt });
    onClose();
  };
  return html`
    <${Dialog} label="System prompt and tools" onClose=${onClose}>
      <form onSubmit=${save}>
        <h2>System prompt and tools</h2>
        ${problem && html`<${Message} tone="error">${problem}<//>`}
        <label class="field"><span>System prompt</span>
          <textarea name="system" rows="4" value=${prompt} onInput=${(event) => setPrompt(event.target.value)}></textarea></label>
        <label class="field"><span>Tools that the model may call, as OpenAI's list. You type in what they answer.</span>
          <textarea name="tools" class="mono" rows="7" spellcheck=${false} placeholder="[]" value=${text}
            onInput=${(event) => setText(event.target.value)}></textarea></label>
        <p class="row end">
          <button type="button" class="plain" onClick=${() => setText(JSON.stringify(WEATHER, null, 2))}>Insert an example</button>
          <button class="primary">Use these</button>
        </p>
      </form>
    <//>
  `;
}

export function Composer(props) {
  const { models, known, model, effort, system, tools, first, busy, settings, choose, setTools, send, stop } = props;
  const [text, setText] = useState(first);
  const [images, setImages] = useState([]);
  const [problem, setProblem] = useState("");
  const [options, setOptions] = useState(false);
  const area = useRef();
  const file = useRef();

  // A link may bring a question; it waits to be sent.
  useEffect(() => first && setText(first), [first]);
  // One can type at once; on a touch screen that would only bring up its keyboard.
  useEffect(() => matchMedia("(pointer: fine)").matches && area.current.focus({ preventScroll: true }), []);
  // As high as its text, up to a third of the window (style.css).
  useEffect(() => {
    area.current.style.height = "auto";
    area.current.style.height = `${area.current.scrollHeight + 2}px`;
  }, [text]);

  const refused = known?.images === false ? `${model} takes no images.` : "";
  const attach = async (files) => {
    const found = [...files].filter((each) => each.type.startsWith("image/"));
    if (!found.length) return;
    if (refused) return setProblem(refused);
    if (found.some((each) => each.size > LARGEST_IMAGE)) return setProblem("An image may have 8 MB at most.");
    setProblem("");
    const read = await Promise.all(found.map(readImage));
    setImages((before) => [...before, ...read]);
  };
  const submit = () => {
    if (busy || !model || !text.trim()) return;
    if (images.length && refused) return setProblem(`${refused} Remove them, or choose another model.`);
    setProblem("");
    send(text, images);
    setText("");
    setImages([]);
  };
  const pressed = (event) => {
    const modified = event.ctrlKey || event.metaKey;
    // While characters are being composed, Enter belongs to the input method.
    if (event.key !== "Enter" || event.isComposing || event.shiftKey || (settings.send === "ctrl" && !modified)) return;
    event.preventDefault();
    submit();
  };
  const listed = models.some((each) => each.id === model) || !model ? models : [{ id: model }, ...models];
  const efforts = effortsOf(known, effort);
  return html`
    <form class="composer" onSubmit=${(event) => (event.preventDefault(), submit())}
      onDragOver=${(event) => event.preventDefault()}
      onDrop=${(event) => (event.preventDefault(), attach(event.dataTransfer.files))}>
      ${problem && html`<${Message} tone="warn" action="OK" onAction=${() => setProblem("")}>${problem}<//>`}
      ${images.length > 0 &&
      html`<div class="row thumbnails">
        ${images.map(
          (url, index) => html`<span class="thumbnail"><img src=${url} alt="Attached image ${index + 1}" />
            <button type="button" aria-label="Remove image ${index + 1}"
              onClick=${() => setImages(images.filter((_, each) => each !== index))}>×</button></span>`,
        )}
      </div>`}
      <textarea ref=${area} data-question aria-label="Your question" placeholder="Ask something" rows="1" value=${text}
        onInput=${(event) => setText(event.target.value)} onKeyDown=${pressed}
        onPaste=${(event) => event.clipboardData.files.length && (event.preventDefault(), attach(event.clipboardData.files))}></textarea>
      <div class="row composer-bar">
        <select aria-label="Model" value=${model} onChange=${(event) => choose({ model: event.target.value, effort: "" })}>
          ${listed.length === 0 && html`<option value="">no models</option>`}
          ${listed.map((each) => html`<option key=${each.id} value=${each.id}>${each.id}</option>`)}
        </select>
        <select aria-label="Effort" value=${effort} onChange=${(event) => choose({ effort: event.target.value })}>
          <option value="">${efforts.includes(SWITCH[0]) ? "thinking" : "effort"}: default</option>
          ${efforts.map(([value, name]) => html`<option key=${value} value=${value}>${name}</option>`)}
        </select>
        <button type="button" class="plain" aria-haspopup="dialog" title="System prompt and tools" onClick=${() => setOptions(true)}>
          <${Icon} name="tools" />${system || tools.length ? "Prompt, tools ✓" : "Prompt, tools"}</button>
        <button type="button" class="plain" onClick=${() => (refused ? setProblem(refused) : file.current.click())}><${Icon} name="image" />Image</button>
        <input ref=${file} class="off-screen" type="file" accept="image/*" multiple tabindex="-1" aria-hidden="true"
          onChange=${(event) => (attach(event.target.files), (event.target.value = ""))} />
        <span class="grow"></span>
        ${busy
          ? html`<button type="button" class="primary" key="stop" onClick=${stop}>Stop</button>`
          : html`<button class="primary" key="send" disabled=${!text.trim() || !model}>Send</button>`}
      </div>
    </form>
    ${options &&
    html`<${Options} system=${system} tools=${tools} choose=${choose} setTools=${setTools} onClose=${() => setOptions(false)} />`}
  `;
}
