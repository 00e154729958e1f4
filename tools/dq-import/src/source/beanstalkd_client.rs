//! The part of beanstalkd's protocol that reading and deleting jobs needs, pipelined.
//! https://github.com/beanstalkd/beanstalkd/blob/master/doc/protocol.txt

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{bail, Context, Result};

pub struct Client {
    input: BufReader<TcpStream>,
    output: TcpStream,
}

/// The first line of an answer, in words, and its body if it has one.
pub struct Answer {
    pub words: Vec<String>,
    pub body: Vec<u8>,
}

impl Answer {
    /// The body, if the answer begins with this word.
    pub fn body_of(self, word: &str) -> Option<Vec<u8>> {
        (self.words[0] == word).then_some(self.body)
    }

    pub fn is(&self, word: &str) -> bool {
        self.words[0] == word
    }
}

impl Client {
    pub fn connect(address: &str) -> Result<Client> {
        const PATIENCE: Duration = Duration::from_secs(30);
        let output =
            TcpStream::connect(address).with_context(|| format!("beanstalkd {address}"))?;
        output.set_nodelay(true)?;
        output.set_read_timeout(Some(PATIENCE))?;
        output.set_write_timeout(Some(PATIENCE))?;
        Ok(Client {
            input: BufReader::with_capacity(1 << 16, output.try_clone()?),
            output,
        })
    }

    /// Sends all the commands, then reads all the answers. The commands must fit into the sockets' buffers: the server
    /// stops reading while its own answers are not read.
    pub fn ask(&mut self, commands: &[String]) -> Result<Vec<Answer>> {
        const AT_ONCE: usize = 100;
        let mut answers = Vec::with_capacity(commands.len());
        for some in commands.chunks(AT_ONCE) {
            let text: String = some.iter().flat_map(|one| [one, "\r\n"]).collect();
            self.output.write_all(text.as_bytes())?;
            for _ in some {
                answers.push(self.answer()?);
            }
        }
        Ok(answers)
    }

    pub fn ask_one(&mut self, command: &str) -> Result<Answer> {
        let mut answers = self.ask(&[command.to_owned()])?;
        Ok(answers.remove(0))
    }

    fn answer(&mut self) -> Result<Answer> {
        let mut line = String::new();
        self.input.read_line(&mut line)?;
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let Some(first) = words.first() else {
            bail!("beanstalkd closed the connection");
        };
        let body = match first.as_str() {
            "OK" | "FOUND" | "RESERVED" => {
                let length: usize = words[words.len() - 1].parse()?;
                let mut body = vec![0; length + 2];
                self.input.read_exact(&mut body)?;
                body.truncate(length);
                body
            }
            "OUT_OF_MEMORY" | "INTERNAL_ERROR" | "BAD_FORMAT" | "UNKNOWN_COMMAND" => {
                bail!("beanstalkd answers {}", line.trim_end());
            }
            _ => Vec::new(),
        };
        Ok(Answer { words, body })
    }
}

/// The flat YAML that the stats commands answer with.
pub fn fields(yaml: &[u8]) -> HashMap<String, String> {
    String::from_utf8_lossy(yaml)
        .lines()
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_owned(), value.trim_matches('"').to_owned()))
        .collect()
}
