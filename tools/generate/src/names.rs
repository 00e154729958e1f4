//! The names of the libraries, read from their sources: those that all five have, and the others with the reason.

use crate::reasons::REASONS;
use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

const HEADING: &str = "## Names\n";
const SECTION: &str = "## Add an option or a field\n";
const LANGUAGES: usize = 5;

/// What is for tests, for printing, or for the library itself.
const NOT_FOR_USERS: [&str; 11] = [
    "chosen",
    "commandsOf",
    "constructor",
    "driver",
    "envelope",
    "GoString",
    "idOf",
    "isDraining",
    "String",
    "toJSON",
    "toString",
];

/// Where a language defines names: in the blocks of these files that begin so, behind one of these words.
struct Place {
    path: &'static str,
    /// Empty: in all of the file.
    block: &'static str,
    before: &'static [&'static str],
    /// What the line has besides.
    has: &'static str,
}

const fn place(path: &'static str, block: &'static str, before: &'static [&'static str]) -> Place {
    let has = "";
    Place {
        path,
        block,
        before,
        has,
    }
}

const DEF: &[&str] = &["    def ", "    async def "];
const MEMBER: &[&str] = &["  async *", "  async ", "  get ", "  readonly ", "  "];
const PUBLIC: &[&str] = &["    public ", "    default "];
const PUB: &[&str] = &["    pub fn ", "    pub async fn "];
const JAVA: &str = "clients/java/src/main/java/io/github/redisdq/";

/// What has names, and where, in each language.
#[rustfmt::skip]
const SUBJECTS: [(&str, [&[Place]; LANGUAGES]); 5] = [
    ("queue", [
        &[place("clients/python/src/dq/asyncio/queue.pyi", "class Queue:", DEF)],
        &[place("clients/node/src/keys.ts", "export class Keys", MEMBER), place("clients/node/src/adding.ts", "export class Adding", MEMBER), place("clients/node/src/outcomes.ts", "export class Outcomes", MEMBER),
            place("clients/node/src/rules.ts", "export class Rules", MEMBER), place("clients/node/src/queue.ts", "export class Queue", MEMBER)],
        &[place("clients/go", "", &["func (q *Queue) "]), Place { has: " *Queue,", ..place("clients/go", "", &["func "]) }],
        &[place("DqQueue.java", "", PUBLIC), place("QueueCommands.java", "", PUBLIC), place("QueueQueries.java", "", PUBLIC)],
        &[place("clients/rust/src/queue", "impl Queue {", PUB), place("clients/rust/src/queue/said.rs", "", &["        pub async fn "])],
    ]),
    ("job", [
        &[place("clients/python/src/dq/job.py", "class BaseJob", DEF), place("clients/python/src/dq/job.py", "class Job(", DEF),
            place("clients/python/src/dq/_job_options.py", "class Corrections", DEF)],
        &[place("clients/node/src/job.ts", "export class Job", MEMBER)],
        &[place("clients/go", "", &["func (j *Job) ", "func (job *Job) "]), place("clients/go/job.go", "type Job struct {", &["\t"]),
            Place { has: "](ctx context.Context, job *Job,", ..place("clients/go", "", &["func "]) }],
        &[place("Job.java", "", PUBLIC), place("Delivery.java", "", PUBLIC)],
        &[place("clients/rust/src/job.rs", "pub struct Job<", &["    pub "]), place("clients/rust/src", "impl<T> Job<T> {", PUB),
            place("clients/rust/src/queue/said.rs", "", &["        pub async fn "])],
    ]),
    ("handler", [
        &[place("clients/python/src/dq/handler.py", "def handler(\n    *,", &["    "])],
        &[place("clients/node/src/handler.ts", "export interface HandlerOptions", MEMBER)],
        &[place("clients/go/handler.go", "type Handler struct {", &["\t"])],
        &[place("Handler.java", "", PUBLIC)],
        &[place("clients/rust/src/handler.rs", "impl Handler {", PUB)],
    ]),
    ("worker", [
        &[place("clients/python/src/dq/_running.py", "    def __init__(", &["        "]), place("clients/python/src/dq/worker.py", "class Worker(", DEF),
            place("clients/python/src/dq/_ruled.py", "class Ruled(", DEF), place("clients/python/src/dq/_running.py", "class BaseWorker(", DEF)],
        &[place("clients/node/src/worker-options.ts", "export interface WorkerOptions", MEMBER), place("clients/node/src/worker.ts", "export class Worker", MEMBER)],
        &[place("clients/go/worker.go", "type WorkerConfig struct {", &["\t"]), place("clients/go", "", &["func (w *Worker) "])],
        &[place("WorkerBuilder.java", "", PUBLIC), place("Worker.java", "", PUBLIC)],
        &[place("clients/rust/src/worker.rs", "impl Worker {", PUB)],
    ]),
    ("hooks", [
        &[place("clients/python/src/dq/hooks.py", "class Hooks", DEF)],
        &[place("clients/node/src/hooks.ts", "export interface Hooks", MEMBER)],
        &[place("clients/go/hooks.go", "type Hooks struct {", &["\t"])],
        &[place("Hooks.java", "", PUBLIC)],
        &[place("clients/rust/src/hooks.rs", "impl Hooks {", PUB)],
    ]),
];

/// What a language calls things of a subject: by their names in small letters.
pub type Names = BTreeMap<String, String>;

/// The names of one subject in all languages.
#[derive(Clone)]
pub struct Subject {
    name: &'static str,
    /// Of Python, Node.js, Go, Java, Rust.
    pub names: Vec<Names>,
}

/// Reads the libraries below this folder.
pub fn read(root: &Path) -> io::Result<Vec<Subject>> {
    let subject = |(name, languages): &(&'static str, [&[Place]; LANGUAGES])| {
        let mut names = vec![Names::new(); LANGUAGES];
        for (names, places) in names.iter_mut().zip(languages) {
            for place in *places {
                for file in files(root, place.path)? {
                    names.extend(place.names(&file));
                }
            }
        }
        Ok(Subject { name, names })
    };
    SUBJECTS.iter().map(subject).collect()
}

/// The texts of a file, or of all in a folder.
fn files(root: &Path, path: &str) -> io::Result<Vec<String>> {
    if !path.contains('/') {
        return Ok(vec![fs::read_to_string(root.join(JAVA).join(path))?]);
    }
    if !root.join(path).is_dir() {
        return Ok(vec![fs::read_to_string(root.join(path))?]);
    }
    let mut texts = Vec::new();
    for entry in fs::read_dir(root.join(path))? {
        let path = entry?.path();
        let name = path.to_string_lossy();
        if (name.ends_with(".go") && !name.ends_with("_test.go")) || name.ends_with(".rs") {
            texts.push(fs::read_to_string(&path)?);
        }
    }
    Ok(texts)
}

impl Place {
    fn names(&self, text: &str) -> Names {
        let mut names = Names::new();
        let mut rest = text;
        while let Some(at) = rest.find(self.block) {
            let block = &rest[at + self.block.len()..];
            let end = if self.block.is_empty() {
                block.len()
            } else {
                end(block, self.block)
            };
            for line in block[..end].lines() {
                let found = self.of_line(line).into_iter().flatten();
                names.extend(found.map(|name| (name.replace('_', "").to_lowercase(), name)));
            }
            rest = &block[end..];
            if rest.is_empty() {
                break;
            }
        }
        names
    }

    fn of_line(&self, line: &str) -> Option<Vec<String>> {
        let rest = self
            .before
            .iter()
            .find_map(|word| line.strip_prefix(word))?;
        let is_of_word = |char: char| char.is_alphanumeric() || char == '_';
        let head = &rest[..rest
            .find(|char| "(<[:?=".contains(char))
            .unwrap_or(rest.len())];
        let is_java = !self.path.contains('/');
        let is_go = self.before == ["\t"];
        let names: Vec<String> = match (is_java, is_go) {
            (true, _) => vec![line[..line.find('(')?]
                .rsplit(|char| !is_of_word(char))
                .next()?
                .to_owned()],
            (_, true) => {
                let end = rest.find([' ', '\t'].as_slice()).unwrap_or(rest.len());
                let many = rest
                    .split(", ")
                    .map(|part| part[..part.find(' ').unwrap_or(part.len())].to_owned());
                if rest[..end].ends_with(',') {
                    many.collect()
                } else {
                    vec![rest[..end].to_owned()]
                }
            }
            _ => vec![head.trim_end_matches('!').to_owned()],
        };
        let begins = |name: &String| {
            if self.path == "clients/go" || is_go {
                name.starts_with(char::is_uppercase)
            } else {
                name.starts_with(char::is_lowercase)
            }
        };
        let is_name = |name: &String| {
            begins(name) && name.chars().all(is_of_word) && !NOT_FOR_USERS.contains(&name.as_str())
        };
        let is_defined = rest.len() > head.len() || is_go;
        Some(
            names
                .into_iter()
                .filter(|name| is_name(name) && is_defined && line.contains(self.has))
                .collect(),
        )
    }
}

/// Where a block ends: with its parentheses, or at the first line that is indented no more than its first.
fn end(block: &str, first: &str) -> usize {
    let indent = first.len() - first.trim_start().len();
    let mut at = 0;
    for (number, line) in block.split_inclusive('\n').enumerate() {
        let is_in = line.trim().is_empty() || line.len() - line.trim_start().len() > indent;
        if number > 0 && !is_in {
            return at;
        }
        at += line.len();
    }
    at
}

impl Subject {
    /// The names of a thing in all languages: of all these keys.
    fn cells(&self, keys: &[&str]) -> Vec<String> {
        let cell = |names: &Names| {
            let found = keys.iter().filter_map(|key| names.get(*key));
            found
                .map(|name| format!("`{name}`"))
                .collect::<Vec<_>>()
                .join(", ")
        };
        self.names.iter().map(cell).collect()
    }

    /// The keys that all languages have, and those that some lack.
    fn keys(&self) -> (Vec<&str>, Vec<&str>) {
        let all: BTreeMap<&str, ()> = self
            .names
            .iter()
            .flat_map(|names| names.keys().map(|key| (key.as_str(), ())))
            .collect();
        all.into_keys()
            .partition(|key| self.names.iter().all(|names| names.contains_key(*key)))
    }

    fn lines(&self) -> String {
        let (alike, others) = self.keys();
        let reasons: Vec<(Vec<&str>, &str)> = REASONS
            .iter()
            .filter(|(subject, ..)| *subject == self.name)
            .map(|(_, keys, why)| (keys.split(' ').collect(), *why))
            .collect();
        let unsaid: Vec<&&str> = others
            .iter()
            .filter(|key| !reasons.iter().any(|(keys, _)| keys.contains(*key)))
            .collect();
        assert!(
            unsaid.is_empty(),
            "tools/generate/src/reasons.rs: say why not all libraries have {unsaid:?} of a {}",
            self.name
        );
        let python = |key: &str| self.names[0].get(key).cloned().unwrap_or_default();
        let words: Vec<String> = alike
            .iter()
            .map(|key| format!("`{}`", python(key)))
            .collect();
        let mut lines = format!(
            "| **{}**: {} | | | | | the same in all |\n",
            self.name,
            words.join(", ")
        );
        for (keys, why) in reasons {
            if keys.iter().any(|key| others.contains(key)) {
                lines += &format!("| {} | {why} |\n", self.cells(&keys).join(" | "));
            }
        }
        lines
    }
}

/// Writes the section of the page.
pub fn put(page: &mut String, subjects: &[Subject]) {
    let from = page.find(HEADING).expect(HEADING);
    let to = from + page[from..].find(SECTION).expect(SECTION);
    let table: String = subjects.iter().map(Subject::lines).collect();
    let text = format!(
        "{HEADING}
The names that users meet, read from the sources by `make generated`, each in its language's case. What is not the same in
all five has its reason in `tools/generate/src/reasons.rs`.

| Python | Node.js | Go | Java | Rust | |
|---|---|---|---|---|---|
{table}
"
    );
    page.replace_range(from..to, &text);
}
