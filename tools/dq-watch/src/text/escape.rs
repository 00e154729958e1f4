//! Arbitrary bytes as text that is safe to show: nothing that a terminal would interpret, and
//! nothing that hides or reverses the text beside it.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// For names and ids: exact, so a backslash is doubled.
pub fn name(bytes: &[u8]) -> String {
    let text = escaped(bytes, true);
    // Nobody could see blanks alone, or point at them.
    match text.trim().is_empty() {
        true => text
            .chars()
            .map(|it| format!("\\u{{{:x}}}", it as u32))
            .collect(),
        false => text,
    }
}

/// For payloads in one line: as `name`, but a backslash, which JSON is full of, stays single.
pub fn line(bytes: &[u8]) -> String {
    escaped(bytes, false)
}

/// As `line`, but its line breaks are kept, as those of a traceback.
pub fn text(bytes: &[u8]) -> String {
    let lines = bytes.split(|&byte| byte == b'\n');
    let lines = lines.map(|it| line(it.strip_suffix(b"\r").unwrap_or(it)));
    lines.collect::<Vec<_>>().join("\n")
}

/// The bytes of what `name` made; None if it made no such text.
pub fn read_name(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((plain, escape)) = rest.split_once('\\') {
        bytes.extend_from_slice(plain.as_bytes());
        let (letter, after) = escape.split_at_checked(1)?;
        rest = match letter {
            "n" | "r" | "t" | "\\" => {
                let plain = [("n", b'\n'), ("r", b'\r'), ("t", b'\t'), ("\\", b'\\')];
                bytes.extend(plain.iter().filter(|it| it.0 == letter).map(|it| it.1));
                after
            }
            "x" => {
                let (hex, after) = after.split_at_checked(2)?;
                bytes.push(u8::from_str_radix(hex, 16).ok()?);
                after
            }
            "u" => {
                let (hex, after) = after.strip_prefix('{')?.split_once('}')?;
                let letter = char::from_u32(u32::from_str_radix(hex, 16).ok()?)?;
                bytes.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
                after
            }
            _ => return None,
        };
    }
    bytes.extend_from_slice(rest.as_bytes());
    Some(bytes)
}

/// As `name`, for output whose columns are found by their spaces.
pub fn word(bytes: &[u8]) -> String {
    name(bytes).replace(' ', "\\x20")
}

/// A payload as lines of at most `width` columns; its own line breaks are kept.
pub fn lines(bytes: &[u8], width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for part in bytes.split(|&byte| byte == b'\n') {
        wrap(&line(part), width.max(4), &mut lines);
    }
    lines
}

/// Sixteen bytes a line (eight where that is too wide): offset, hex, and what is printable ASCII.
pub fn hex(bytes: &[u8], width: usize) -> Vec<String> {
    let per_line = if width >= 76 { 16 } else { 8 };
    let lines = bytes.chunks(per_line).enumerate().map(|(index, chunk)| {
        let hex: String = chunk.iter().map(|byte| format!("{byte:02x} ")).collect();
        let text: String = chunk.iter().copied().map(ascii).collect();
        let offset = index * per_line;
        format!("{offset:08x}  {hex:<fill$} {text}", fill = 3 * per_line)
    });
    lines.collect()
}

fn ascii(byte: u8) -> char {
    if byte == b' ' || byte.is_ascii_graphic() {
        byte.into()
    } else {
        '.'
    }
}

fn escaped(bytes: &[u8], double_backslash: bool) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match letter {
                '\n' => text.push_str("\\n"),
                '\r' => text.push_str("\\r"),
                '\t' => text.push_str("\\t"),
                '\\' if double_backslash => text.push_str("\\\\"),
                _ if letter.is_control() && letter.is_ascii() => {
                    text.push_str(&format!("\\x{:02x}", letter as u32));
                }
                _ if is_unfit(letter) => text.push_str(&format!("\\u{{{:x}}}", letter as u32)),
                _ => text.push(letter),
            }
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

/// Control characters, what has no width of its own (joiners, variation selectors, marks), what
/// changes the direction of writing, and private characters, whose width is unknown.
fn is_unfit(letter: char) -> bool {
    letter.is_control()
        || letter.width().unwrap_or(0) == 0
        || matches!(letter,
            '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{e000}'..='\u{f8ff}' | '\u{feff}'
            | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{10ffff}')
}

/// Cut to a width, with a mark where something was left out.
pub fn fit(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut cut = prefix(text, width.saturating_sub(1)).to_owned();
    if width > 0 {
        cut.push('…');
    }
    cut
}

/// Cut or filled to exactly that width.
pub fn pad(text: &str, width: usize) -> String {
    let mut text = fit(text, width);
    text.extend(std::iter::repeat_n(' ', width.saturating_sub(text.width())));
    text
}

/// The longest beginning that is not wider.
fn prefix(text: &str, width: usize) -> &str {
    let mut used = 0;
    for (at, letter) in text.char_indices() {
        used += letter.width().unwrap_or(0);
        if used > width {
            return &text[..at];
        }
    }
    text
}

fn wrap(text: &str, width: usize, lines: &mut Vec<String>) {
    let mut rest = text;
    loop {
        let first = prefix(rest, width);
        lines.push(first.to_owned());
        rest = &rest[first.len()..];
        if rest.is_empty() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_gets_through() {
        for byte in 0..=255u8 {
            for text in [name(&[byte]), line(&[b'a', byte]), word(&[byte])] {
                assert!(!text.chars().any(char::is_control), "{byte}: {text:?}");
            }
        }
        for code in (0..=0x10ffff).filter_map(char::from_u32) {
            let shown = name(code.to_string().as_bytes());
            assert!(!shown.chars().any(char::is_control), "{shown:?}");
            assert!(shown.width() > 0, "{shown:?} is to be seen");
        }
        assert_eq!(name(b"\x1b[31m\0\xff\r\n"), r"\x1b[31m\x00\xff\r\n");
        assert_eq!(name("a\u{202e}b\u{9b}".as_bytes()), r"a\u{202e}b\u{9b}");
    }

    #[test]
    fn a_name_can_be_read_back() {
        for code in (0..=0x10ffff).filter_map(char::from_u32) {
            let text = code.to_string();
            assert_eq!(read_name(&name(text.as_bytes())), Some(text.into()));
        }
        let blanks = "  \u{a0}\u{3000}".as_bytes();
        assert_eq!(name(b" "), r"\u{20}");
        for bytes in [blanks, b"a\\x41\xff\xfe\n", b"\\u{41}", b"\xc3", b"", b"\\"] {
            assert_eq!(read_name(&name(bytes)).as_deref(), Some(bytes));
            assert_eq!(text(bytes).replace('\n', "\\n"), line(bytes));
        }
        for text in ["\\", "\\q", "\\x4", "\\xgg", "\\u{", "\\u{110000}", "\\ü"] {
            assert_eq!(read_name(text), None, "{text}");
        }
    }

    #[test]
    fn names_differ_where_their_bytes_differ() {
        assert_eq!(name(b"\\n"), r"\\n");
        assert_ne!(name(b"\\n"), name(b"\n"));
        assert_eq!(line(b"{\"a\\b\"}"), "{\"a\\b\"}");
        assert_eq!(word(b"two words"), r"two\x20words");
        assert_eq!(name("Grüße 東京".as_bytes()), "Grüße 東京");
    }

    #[test]
    fn text_is_cut_by_its_width() {
        assert_eq!(fit("abcdef", 6), "abcdef");
        assert_eq!(fit("abcdefg", 6), "abcde…");
        assert_eq!(fit("東京東京", 5), "東京…");
        assert_eq!(pad("東京東京", 4), "東… ");
        assert_eq!(fit("abc", 0), "");
    }

    #[test]
    fn payloads_are_wrapped_and_keep_their_lines() {
        assert_eq!(lines(b"ab\ncdefgh\n", 4), ["ab", "cdef", "gh", ""]);
        let hex = hex(b"0123456789abcdef\x1b", 80);
        assert_eq!(
            hex[0],
            "00000000  30 31 32 33 34 35 36 37 38 39 61 62 63 64 65 66  0123456789abcdef"
        );
        assert!(hex[1].starts_with("00000010  1b ") && hex[1].ends_with(" ."));
        assert_eq!(hex[1].find('.'), hex[0].rfind('0').map(|_| 59));
    }
}
