// Keeps a number in a file that it replaces by renaming a new one over it, without fsync: rename.js write|load DIR
const fs = require("fs");
const [action, directory] = process.argv.slice(2);
const path = `${directory}/state.json`;

if (action === "write") {
  for (const number of [1, 2]) {
    fs.writeFileSync(`${path}.tmp`, JSON.stringify({ number, text: "x".repeat(5000 * number) }));
    fs.renameSync(`${path}.tmp`, path);
    fs.appendFileSync(process.env.CRASHLAB_EVENTS, `ack ${number}\n`);
  }
} else {
  const state = fs.existsSync(path) ? JSON.parse(fs.readFileSync(path, "utf8")) : { number: 0, text: "" };
  if (state.text.length !== 5000 * state.number) {
    throw new Error(`${state.number} was saved with another text`);
  }
  console.log(state.number);
}
