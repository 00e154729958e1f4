//! Commands as somebody would type them into redis-cli.

use std::fmt::Write;

use redis::{Arg, Cmd};

/// Lines that are typed one after another, in this database.
pub fn in_db(db: u32, lines: impl IntoIterator<Item = String>) -> String {
    let select = (db != 0).then(|| format!("SELECT {db}"));
    let all = select.into_iter().chain(lines);
    all.collect::<Vec<_>>().join("\n")
}

/// Quotes words, and escapes in them all but harmless letters: an id pasted into a shell by mistake runs nothing there.
pub fn line(command: &Cmd) -> String {
    let words = command.args_iter().map(|word| match word {
        Arg::Simple(bytes) => quoted(bytes),
        _ => String::new(),
    });
    words.collect::<Vec<_>>().join(" ")
}

fn quoted(bytes: &[u8]) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"._:-/@%+,".contains(byte);
    if !bytes.is_empty() && bytes.iter().all(is_plain) {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    let mut text = String::from("\"");
    for byte in bytes {
        match byte {
            b'"' => text.push_str("\\\""),
            b'\\' | b'$' | b'`' | b'!' => drop(write!(text, "\\x{byte:02x}")),
            b' '..=b'~' => text.push(char::from(*byte)),
            _ => drop(write!(text, "\\x{byte:02x}")),
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_redis_cli_reads_back() {
        let mut command = redis::cmd("DQ.ADD");
        command
            .arg("q:1")
            .arg("")
            .arg(b"{\"a\": 1}\n\xff".as_slice());
        command.arg("$(x)`y`!\\");
        assert_eq!(
            line(&command),
            r#"DQ.ADD q:1 "" "{\"a\": 1}\x0a\xff" "\x24(x)\x60y\x60\x21\x5c""#
        );
    }
}
