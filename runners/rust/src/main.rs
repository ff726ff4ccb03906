//! Sends every case of asides to a program and compares what it answers: `run --data FOLDER -- PROGRAM ARGUMENTS`
//!
//! One JSON object on each line to the program's standard input, one on each line from its standard output.
//! docs/how-to/cases.md has the protocol and the rules of comparison. Standard library only.

use asides_cases::{object, Json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{exit, Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{channel, Receiver};
use std::time::Duration;

const USAGE: &str = "usage: run [options] -- PROGRAM [ARGUMENT...]

  --data FOLDER      the folder with cases.jsonl and formats.json (default: .)
  --format NAME      only cases of this format; may be given several times
  --case TEXT        only cases whose id holds this text
  --plain            only cases without policies
  --no-calls         only cases in which nothing is called
  --cut WAY          characters, whole or both (default): how the text is cut into chunks
  --timeout SECONDS  how long an answer may take (default: 10)
  --show NUMBER      how many failures are explained (default: 10)
  --json             write one line of JSON instead of the table

exit codes: 0 all passed, 1 a case failed, 2 wrong usage, or nothing was compared";
/// A program that ends at each case is not started for ever.
const MOST_STARTS: usize = 5;

fn fail(message: &str) -> ! {
    eprintln!("run: {message}");
    exit(2)
}

struct Options {
    data: String,
    formats: Vec<String>,
    case: String,
    plain: bool,
    no_calls: bool,
    cuts: Vec<&'static str>,
    timeout: f64,
    show: usize,
    json: bool,
    program: Vec<String>,
}

fn read_options() -> Options {
    let mut given = std::env::args().skip(1);
    let mut found = Options {
        data: ".".to_string(),
        formats: vec![],
        case: String::new(),
        plain: false,
        no_calls: false,
        cuts: vec!["characters", "whole"],
        timeout: 10.0,
        show: 10,
        json: false,
        program: vec![],
    };
    while let Some(name) = given.next() {
        match name.as_str() {
            "--" => {
                found.program = given.by_ref().collect();
                break;
            }
            "--help" => {
                println!("{USAGE}");
                exit(0)
            }
            "--plain" => found.plain = true,
            "--no-calls" => found.no_calls = true,
            "--json" => found.json = true,
            "--data" | "--format" | "--case" | "--cut" | "--timeout" | "--show" => {
                let value = given.next().unwrap_or_else(|| fail(&format!("{name} needs a value")));
                let number = value.parse::<f64>().ok().filter(|number| (0.0..1e6).contains(number));
                let needed = || number.unwrap_or_else(|| fail(&format!("{name} needs a number, not {value}")));
                match name.as_str() {
                    "--data" => found.data = value,
                    "--format" => found.formats.push(value),
                    "--case" => found.case = value,
                    "--timeout" => found.timeout = needed(),
                    "--show" => found.show = needed() as usize,
                    _ => {
                        found.cuts = match value.as_str() {
                            "characters" => vec!["characters"],
                            "whole" => vec!["whole"],
                            "both" => vec!["characters", "whole"],
                            _ => fail("--cut must be characters, whole or both"),
                        }
                    }
                }
            }
            _ => fail(&format!("there is no option {name}\n{USAGE}")),
        }
    }
    if found.program.is_empty() {
        fail(&format!("no program is given\n{USAGE}"));
    }
    found
}

// Comparing.

fn same(one: &Json, other: &Json) -> bool {
    match (one, other) {
        (Json::Null, Json::Null) => true,
        (Json::Bool(one), Json::Bool(other)) => one == other,
        (Json::Number(one), Json::Number(other)) => same_number(one, other),
        (Json::Text(one), Json::Text(other)) => one == other,
        (Json::List(one), Json::List(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Json::Object(_), Json::Object(_)) => {
            let has = |one: &Json, other: &Json| one.fields().iter().all(|(key, _)| other.get(key).is_some());
            let equal = |key: &str, one: &Json, other: &Json| {
                if key == "arguments" {
                    same_arguments(one, other)
                } else {
                    same(one, other)
                }
            };
            has(one, other)
                && has(other, one)
                && one
                    .fields()
                    .iter()
                    .all(|(key, _)| match (one.get(key), other.get(key)) {
                        (Some(one), Some(other)) => equal(key, one, other),
                        _ => false,
                    })
        }
        _ => false,
    }
}

/// Whole numbers to the digit, because they may be larger than a float can say; others as floats.
fn same_number(one: &str, other: &str) -> bool {
    let whole = |digits: &str| !digits.contains(['.', 'e', 'E']);
    one == other || (!(whole(one) && whole(other)) && one.parse::<f64>().ok() == other.parse::<f64>().ok())
}

fn same_arguments(one: &Json, other: &Json) -> bool {
    match (one.text(), other.text()) {
        (Some(one), Some(other)) if one != other => match (Json::parse(one), Json::parse(other)) {
            (Ok(one), Ok(other)) => same(&one, &other),
            _ => false,
        },
        _ => same(one, other),
    }
}

fn without(value: &Json, leave: impl Fn(&str, &Json) -> bool) -> Json {
    match value {
        Json::Object(fields) => Json::Object(
            fields
                .iter()
                .filter(|(name, value)| !leave(name, value))
                .cloned()
                .collect(),
        ),
        other => other.clone(),
    }
}

/// What is compared of a part: usual values are left out, and an id counts only where the case has one.
fn usual_part(part: &Json, expected: Option<&Json>) -> Json {
    let counts = expected.and_then(|expected| expected.get("id")).is_some();
    without(part, |name, value| {
        matches!((name, value), ("complete", Json::Bool(true)) | ("error", Json::Null)) || (name == "id" && !counts)
    })
}

/// Events with all neighbours of one kind joined, without gaps, without empty deltas.
fn joined(events: &[Json]) -> Vec<Json> {
    let mut found: Vec<Json> = Vec::new();
    for event in events {
        let event = without(event, |name, _| name == "gap");
        let kind = ["thinking", "text", "arguments"]
            .into_iter()
            .find(|key| event.get(key).and_then(Json::text).is_some());
        let kind = match kind {
            Some(kind) => kind,
            None => {
                found.push(event);
                continue;
            }
        };
        let more = event.get(kind).and_then(Json::text).unwrap_or_default().to_string();
        if more.is_empty() {
            continue;
        }
        let call = |event: &Json| event.get("call").map(Json::to_string);
        match found.last_mut() {
            Some(last) if last.get(kind).and_then(Json::text).is_some() && call(last) == call(&event) => {
                if let Json::Object(fields) = last {
                    for (name, value) in fields.iter_mut() {
                        if let (true, Json::Text(text)) = (name == kind, value) {
                            text.push_str(&more);
                        }
                    }
                }
            }
            _ => found.push(event),
        }
    }
    found
}

/// What is compared of an API's reply: the keys that count, where they hold something.
fn pruned(value: &Json, keys: &[&str]) -> Json {
    match value {
        Json::List(items) => Json::List(items.iter().map(|item| pruned(item, keys)).collect()),
        Json::Object(fields) => Json::Object(
            fields
                .iter()
                .filter(|(name, _)| keys.contains(&name.as_str()))
                .filter_map(|(name, value)| {
                    let own = name == "arguments" || name == "input";
                    let kept = if own { value.clone() } else { pruned(value, keys) };
                    (own || !kept.is_empty()).then(|| (name.clone(), kept))
                })
                .collect(),
        ),
        other => other.clone(),
    }
}

enum Verdict {
    Passed,
    Skipped,
    Failed(String, Option<Json>, Option<Json>),
}

fn listed(answer: &Json) -> Vec<Json> {
    match answer {
        Json::List(items) => items.clone(),
        other => vec![other.clone()],
    }
}

fn judge(expected: &Json, line: &str, keys: &[&str]) -> Verdict {
    let answer = match Json::parse(line) {
        Ok(answer @ Json::Object(_)) => answer,
        Ok(other) => return Verdict::Failed("the answer is no object".to_string(), None, Some(other)),
        Err(error) => return Verdict::Failed(format!("the answer is no JSON: {error}"), None, Some(line.into())),
    };
    if answer.get("skip").is_some() {
        return Verdict::Skipped;
    }
    if let Some(error) = answer.get("error") {
        return Verdict::Failed("the program reports an error".to_string(), None, Some(error.clone()));
    }
    if answer.get("parts").is_none() && answer.get("events").is_none() {
        return Verdict::Failed("the answer has neither parts nor events".to_string(), None, None);
    }
    let mut pairs: Vec<(String, Json, Json)> = Vec::new();
    if let (Some(wanted), Some(found)) = (expected.get("parts"), answer.get("parts")) {
        let wanted = wanted.list();
        let found = listed(found)
            .iter()
            .enumerate()
            .map(|(at, part)| usual_part(part, wanted.get(at)))
            .collect();
        pairs.push(("parts".to_string(), Json::List(wanted.to_vec()), Json::List(found)));
    }
    if let (Some(wanted), Some(found)) = (expected.get("events"), answer.get("events")) {
        let wanted = joined(wanted.list());
        let found = joined(&listed(found));
        let found = found
            .iter()
            .enumerate()
            .map(|(at, event)| usual_part(event, wanted.get(at)))
            .collect();
        pairs.push(("events".to_string(), Json::List(wanted), Json::List(found)));
    }
    for (name, usual) in [
        ("notices", Json::List(vec![])),
        ("termination", "".into()),
        ("beyond", "".into()),
    ] {
        if let Some(found) = answer.get(name) {
            pairs.push((
                name.to_string(),
                expected.get(name).cloned().unwrap_or(usual),
                found.clone(),
            ));
        }
    }
    for (name, reply) in answer.get("apis").map(Json::fields).unwrap_or_default() {
        let wanted = expected
            .get("apis")
            .and_then(|apis| apis.get(name))
            .cloned()
            .unwrap_or(Json::Null);
        pairs.push((format!("apis.{name}"), wanted, pruned(reply, keys)));
    }
    match pairs.into_iter().find(|(_, wanted, found)| !same(wanted, found)) {
        Some((what, wanted, found)) => Verdict::Failed(what, Some(wanted), Some(found)),
        None => Verdict::Passed,
    }
}

// The program at the other end of the pipe.

struct Peer {
    command: Vec<String>,
    timeout: Duration,
    starts: usize,
    running: Option<(Child, ChildStdin, Receiver<String>)>,
}

impl Peer {
    fn start(&mut self) -> bool {
        self.starts += 1;
        if self.starts > MOST_STARTS {
            return false;
        }
        let mut command = Command::new(&self.command[0]);
        command
            .args(&self.command[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command
            .spawn()
            .unwrap_or_else(|error| fail(&format!("{} cannot be run: {error}", self.command[0])));
        let (input, output) = match (child.stdin.take(), child.stdout.take()) {
            (Some(input), Some(output)) => (input, output),
            _ => return false,
        };
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            let mut line = Vec::new();
            while matches!(output.read_until(b'\n', &mut line), Ok(length) if length > 0) {
                if sender
                    .send(String::from_utf8_lossy(&line).trim_end().to_string())
                    .is_err()
                {
                    return;
                }
                line.clear();
            }
        });
        self.running = Some((child, input, lines));
        true
    }

    /// Its answer to a line; none where it gave none.
    fn ask(&mut self, line: &str) -> Option<String> {
        if self.running.is_none() && !self.start() {
            return None;
        }
        let (_, input, lines) = self.running.as_mut()?;
        // That it has ended shows when no answer comes.
        let _ = input
            .write_all(format!("{line}\n").as_bytes())
            .and_then(|()| input.flush());
        let answer = lines.recv_timeout(self.timeout).ok();
        if answer.is_none() {
            self.stop();
        }
        answer
    }

    fn stop(&mut self) {
        if let Some((mut child, input, _)) = self.running.take() {
            drop(input);
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn read_file(folder: &str, name: &str) -> String {
    let path = std::path::Path::new(folder).join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| fail(&format!("{} cannot be read: {error}", path.display())))
}

fn read_json(text: &str, what: &str) -> Json {
    Json::parse(text).unwrap_or_else(|error| fail(&format!("{what} cannot be read: {error}")))
}

struct Failure {
    id: String,
    format: String,
    cut: &'static str,
    raw: String,
    what: String,
    wanted: Option<Json>,
    found: Option<Json>,
}

fn main() {
    let options = read_options();
    let table = read_json(&read_file(&options.data, "formats.json"), "formats.json");
    let version = table.get("version").map(Json::to_string).unwrap_or_default();
    if version != "1" {
        fail(&format!(
            "the data in {} is of version {version}; this runner reads version 1",
            options.data
        ));
    }
    let keys: Vec<&str> = table
        .get("compared")
        .map(Json::list)
        .unwrap_or_default()
        .iter()
        .filter_map(Json::text)
        .collect();
    let timeout = Duration::from_secs_f64(options.timeout);
    let mut peer = Peer {
        command: options.program.clone(),
        timeout,
        starts: 0,
        running: None,
    };
    let mut rows: BTreeMap<String, [usize; 3]> = BTreeMap::new();
    let mut failures: Vec<Failure> = Vec::new();
    for line in read_file(&options.data, "cases.jsonl").lines() {
        let expected = read_json(line, "cases.jsonl");
        let string = |name: &str| expected.get(name).and_then(Json::text).unwrap_or_default().to_string();
        let (id, raw) = (string("id"), string("raw"));
        if !id.contains(&options.case) || (options.plain && expected.get("policies").is_some()) {
            continue;
        }
        let parts = expected.get("parts").map(Json::list).unwrap_or_default();
        if options.no_calls && parts.iter().any(|part| part.get("call").is_some()) {
            continue;
        }
        for format in expected
            .get("formats")
            .map(Json::list)
            .unwrap_or_default()
            .iter()
            .filter_map(Json::text)
        {
            if !options.formats.is_empty() && !options.formats.iter().any(|name| name == format) {
                continue;
            }
            let row = rows.entry(format.to_string()).or_default();
            let mut verdict = Verdict::Passed;
            for cut in &options.cuts {
                let chunks = match *cut {
                    "characters" => raw.chars().map(|character| Json::Text(character.to_string())).collect(),
                    _ if raw.is_empty() => vec![],
                    _ => vec![Json::Text(raw.clone())],
                };
                let mut sent = vec![
                    ("id", id.as_str().into()),
                    ("format", format.into()),
                    ("chunks", Json::List(chunks)),
                ];
                for name in ["start", "prompt", "tools", "policies", "ended"] {
                    sent.extend(expected.get(name).map(|value| (name, value.clone())));
                }
                verdict = match peer.ask(&object(sent).to_string()) {
                    Some(answer) => judge(&expected, &answer, &keys),
                    None => Verdict::Failed("no answer".to_string(), None, None),
                };
                if let Verdict::Failed(what, wanted, found) = &verdict {
                    let (id, raw, format, what) = (id.clone(), raw.clone(), format.to_string(), what.clone());
                    failures.push(Failure {
                        id,
                        format,
                        cut,
                        raw,
                        what,
                        wanted: wanted.clone(),
                        found: found.clone(),
                    });
                }
                if !matches!(verdict, Verdict::Passed) {
                    break;
                }
            }
            row[match verdict {
                Verdict::Passed => 0,
                Verdict::Failed(..) => 1,
                Verdict::Skipped => 2,
            }] += 1;
        }
    }
    peer.stop();
    let total = rows.values().fold([0; 3], |total, row| {
        [total[0] + row[0], total[1] + row[1], total[2] + row[2]]
    });
    if options.json {
        write_json(total, &failures);
    } else {
        write_table(&rows, total, &failures, options.show);
    }
    if total[0] + total[1] == 0 {
        fail("nothing was compared");
    }
    exit(if total[1] > 0 { 1 } else { 0 });
}

fn write_json(total: [usize; 3], failures: &[Failure]) {
    let short = failures.iter().map(|failure| {
        object(vec![
            ("id", failure.id.as_str().into()),
            ("format", failure.format.as_str().into()),
            ("cut", failure.cut.into()),
            ("failed", failure.what.as_str().into()),
        ])
    });
    let number = |place: usize| Json::Number(total[place].to_string());
    let fields = vec![
        ("passed", number(0)),
        ("failed", number(1)),
        ("skipped", number(2)),
        ("failures", Json::List(short.collect())),
    ];
    println!("{}", object(fields));
}

fn write_table(rows: &BTreeMap<String, [usize; 3]>, total: [usize; 3], failures: &[Failure], show: usize) {
    let width = rows.keys().map(String::len).max().unwrap_or(0).max(6);
    println!("{:width$}{:>9}{:>9}{:>9}", "format", "passed", "failed", "skipped");
    for (name, row) in rows
        .iter()
        .map(|(name, row)| (name.as_str(), *row))
        .chain([("all", total)])
    {
        println!("{name:width$}{:>9}{:>9}{:>9}", row[0], row[1], row[2]);
    }
    for failure in failures.iter().take(show) {
        println!(
            "\nfailed: {}\n  format {}, cut {}: {}",
            failure.id, failure.format, failure.cut, failure.what
        );
        println!("  raw       {}", Json::Text(failure.raw.clone()));
        for (label, value) in [("expected", &failure.wanted), ("found", &failure.found)] {
            if let Some(value) = value {
                println!("  {label:9} {value}");
            }
        }
    }
    if failures.len() > show {
        println!("\n{} more failed", failures.len() - show);
    }
}
