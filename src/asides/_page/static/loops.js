// The stretch at the end of a text that says the same again and again.

const TAIL = 60; // characters at the end whose last occurrence before gives the length of a round
const FAR = 4000; // characters back in which that is looked for
const ROUNDS = 3; // how often a passage stands in a row, at least
const FEWEST = 300; // characters of all rounds together: three like lines of a table are none

// {start, rounds} of the loop that a text ends in, or null. A last round may be unfinished. The work is bounded, but for the
// loop's own length: so it can be asked again with every piece.
export function loopAtEnd(text) {
  if (text.length < FEWEST) return null;
  const tail = text.slice(-TAIL);
  if (!/\p{L}/u.test(tail)) return null; // rows of numbers and ruled lines are no loops
  const near = text.slice(-FAR, -1);
  const before = near.lastIndexOf(tail);
  if (before < 0) return null;
  const round = near.length + 1 - TAIL - before;
  let start = text.length - round;
  while (start > 0 && text[start - 1] === text[start - 1 + round]) start--;
  const rounds = (text.length - start) / round;
  return rounds >= ROUNDS && text.length - start >= FEWEST ? { start, rounds: Math.floor(rounds + 0.1) } : null; // a space after the last is no part of it
}
