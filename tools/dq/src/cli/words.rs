//! A line as the words of a command: quotes and escapes as in redis-cli.

/// None where a quote is not closed, or is followed by something else than a blank.
pub fn split(line: &str) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut rest = line.trim_start().as_bytes();
    while !rest.is_empty() {
        let mut word = Vec::new();
        while let [first, after @ ..] = rest {
            rest = match first {
                it if it.is_ascii_whitespace() => break,
                b'"' => double(after, &mut word)?,
                b'\'' => single(after, &mut word)?,
                _ => {
                    word.push(*first);
                    after
                }
            };
            if matches!(first, b'"' | b'\'')
                && rest.first().is_some_and(|it| !it.is_ascii_whitespace())
            {
                return None;
            }
        }
        words.push(word);
        rest = rest.trim_ascii_start();
    }
    Some(words)
}

/// What follows the closing quote.
fn double<'a>(mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        rest = match rest {
            [b'"', after @ ..] => return Some(after),
            [b'\\', b'x', high, low, after @ ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                let digit = |it: &u8| (*it as char).to_digit(16).unwrap_or_default() as u8;
                word.push(digit(high) << 4 | digit(low));
                after
            }
            [b'\\', escaped, after @ ..] => {
                word.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'a' => 7,
                    other => *other,
                });
                after
            }
            [byte, after @ ..] => {
                word.push(*byte);
                after
            }
            [] => return None,
        }
    }
}

fn single<'a>(mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        rest = match rest {
            [b'\'', after @ ..] => return Some(after),
            [b'\\', b'\'', after @ ..] => {
                word.push(b'\'');
                after
            }
            [byte, after @ ..] => {
                word.push(*byte);
                after
            }
            [] => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn words_are_as_in_redis_cli() {
        for (line, expected) in [
            ("", Some(vec![])),
            ("  dq.pop  q ", Some(vec!["dq.pop", "q"])),
            (r#"set a "x y""#, Some(vec!["set", "a", "x y"])),
            (r#"set a "" ''"#, Some(vec!["set", "a", "", ""])),
            (r#"a "\"\\\n\x41\xZ""#, Some(vec!["a", "\"\\\nAxZ"])),
            (r"a 'it\'s' '\n'", Some(vec!["a", "it's", r"\n"])),
            (r#"a b"c d""#, Some(vec!["a", "bc d"])),
            (r#"a "b"#, None),
            ("a 'b", None),
            (r#"a "b"c"#, None),
            (r#"a "b\"#, None),
        ] {
            let words = split(line);
            let expected = expected.map(|it: Vec<&str>| {
                it.into_iter()
                    .map(|it| it.as_bytes().to_vec())
                    .collect::<Vec<_>>()
            });
            assert_eq!(words, expected, "{line}");
        }
        assert_eq!(split(r#""\xff""#), Some(vec![vec![0xff]]));
    }
}
