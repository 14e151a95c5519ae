// Buys two tickets and writes down its answer: agent.js DIR [--resume]. With CARELESS=1 it overwrites its notes.
const fs = require("fs");
const [directory] = process.argv.slice(2);
const events = process.env.CRASHLAB_EVENTS;

function put(name, value) {
  if (process.env.CARELESS) {
    fs.writeFileSync(`${directory}/${name}`, JSON.stringify(value));
    return;
  }
  const draft = `${directory}/${name}.draft`;
  fs.rmSync(draft, { force: true });
  const file = fs.openSync(draft, "wx");
  fs.writeSync(file, JSON.stringify(value));
  fs.fsyncSync(file);
  fs.closeSync(file);
  fs.renameSync(draft, `${directory}/${name}`);
  const folder = fs.openSync(directory, "r");
  fs.fsyncSync(folder);
  fs.closeSync(folder);
}

const notes = `${directory}/notes.json`;
const state = fs.existsSync(notes) ? JSON.parse(fs.readFileSync(notes, "utf8")) : { bought: [] };
for (const seat of ["A1", "A2"]) {
  if (!state.bought.includes(seat)) {
    fs.appendFileSync(events, `effect ticket key=${seat} seat=${seat}\n`); // the box office knows each key
    state.bought.push(seat);
    put("notes.json", state);
    fs.appendFileSync(events, `ack ${state.bought.length}\n`);
  }
}
put("answer.json", state.bought);
