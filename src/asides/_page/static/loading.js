// What the views that read have in common: asking the gateway again when the address changes, and times.

import { useEffect, useState } from "./ui.js";

// A value that changes only when it has rested for a while.
export function useRested(value, wait) {
  const [rested, setRested] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setRested(value), wait);
    return () => clearTimeout(timer);
  }, [value]);
  return rested;
}

// What the gateway answers to `load`, asked again when one of `inputs` changes; an answer that comes too late is left out.
export function useLoaded(load, inputs) {
  const [state, setState] = useState({});
  const [round, setRound] = useState(0);
  useEffect(() => {
    const controller = new AbortController();
    setState((before) => ({ ...before, loading: true }));
    Promise.resolve(load(controller.signal)).then(
      (found) => controller.signal.aborted || setState({ found }),
      (error) => controller.signal.aborted || setState({ error }),
    );
    return () => controller.abort();
  }, [...inputs, round]);
  return { ...state, again: () => setRound((last) => last + 1) };
}

// A time as this person's clock has it.
export const moment = (time) => (time ? new Date(time).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" }) : "");
