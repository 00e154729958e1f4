//! Reasons of dead jobs; those that differ only in an id, a time or a count are one.

use dq_watch::text::escape;

const NONE: &str = "(no reason)";

pub fn of(reason: Option<&[u8]>) -> String {
    reason.map_or(NONE.to_owned(), |reason| {
        pattern(&unnamed(&escape::text(reason)))
    })
}

/// What stands in quotes is a name, of a user or a file: `…`.
fn unnamed(reason: &str) -> String {
    let mut shown = String::with_capacity(reason.len());
    let mut rest = reason;
    while let Some((open, quote)) = rest.char_indices().find(|(_, it)| "\"'`".contains(*it)) {
        let (before, after) = (&rest[..open], &rest[open + 1..]);
        let is_outside = |it: Option<char>| it.is_none_or(|it| !it.is_alphanumeric());
        let ends = |at: &usize| *at > 0 && is_outside(after[at + 1..].chars().next());
        let mut ends_at = after.match_indices(quote).map(|(at, _)| at);
        shown.push_str(before);
        shown.push(quote);
        rest = match ends_at
            .find(ends)
            .filter(|_| is_outside(before.chars().last()))
        {
            None => after,
            Some(end) => {
                shown.extend(['…', quote]);
                &after[end + 1..]
            }
        };
    }
    shown.push_str(rest);
    shown
}

/// Numbers of any length, and words of which most are digits, are `#`; but not a status, which says what happened.
fn pattern(reason: &str) -> String {
    let mut shown = String::with_capacity(reason.len());
    let mut word = String::new();
    let mut before = String::new();
    for letter in reason.chars().chain(std::iter::once(' ')) {
        if letter.is_alphanumeric() || letter == '-' {
            word.push(letter);
            continue;
        }
        if !word.is_empty() {
            match is_status(&word, &before) {
                true => shown.push_str(&word),
                false => shown.push_str(&numbered(&word)),
            }
            before = std::mem::take(&mut word);
        }
        shown.push(letter);
    }
    shown.pop();
    shown
}

/// Names of which the number is a part.
const VERSIONED: [&str; 7] = ["http", "ipv", "iso", "md", "sha", "tls", "utf"];

/// The word, or `#`; of a name with a number only the number: `worker-296`, `shard-7`, but not `utf-8`.
fn numbered(word: &str) -> String {
    if is_number(word) {
        return "#".to_owned();
    }
    let name = word.split('-').next().unwrap_or_default();
    if VERSIONED.contains(&name.to_ascii_lowercase().as_str()) {
        return word.to_owned();
    }
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|it| it.is_ascii_digit());
    let part = |part| if is_digits(part) { "#" } else { part };
    word.split('-').map(part).collect::<Vec<_>>().join("-")
}

/// A number, also with its unit (`12s`), or an id: `7f3a-90c1` and `order-70123`, not `utf-8`.
fn is_number(word: &str) -> bool {
    let digits = word.chars().filter(char::is_ascii_digit).count();
    let starts = word.starts_with(|letter: char| letter.is_ascii_digit());
    let others = word.chars().count() - digits;
    digits >= 4 || (starts && others <= 2 && digits > 0)
}

/// `HTTP 404`, `status 503`, `550 no such user`: three digits at the beginning, or after one of these words; after `code`
/// and `error` only those that HTTP has.
fn is_status(word: &str, before: &str) -> bool {
    let three = word.len() == 3 && word.bytes().all(|it| it.is_ascii_digit());
    let of_http = || {
        matches!(
            word.parse(),
            Ok(200..=208 | 300..=308 | 400..=431 | 451 | 499..=511)
        )
    };
    three
        && match before.to_ascii_lowercase().as_str() {
            "" | "http" | "status" | "smtp" => true,
            "code" | "error" => of_http(),
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use super::{pattern, unnamed};

    #[test]
    fn reasons_that_differ_in_names_are_one() {
        for (reason, is) in [
            ("no user 'ann' here", "no user '…' here"),
            (r#"file "a's b": gone"#, r#"file "…": gone"#),
            ("can't read Ann's file", "can't read Ann's file"),
            ("`x` and `y`", "`…` and `…`"),
            ("\"\" 'open", "\"\" 'open"),
            ("", ""),
        ] {
            assert_eq!(unnamed(reason), is);
        }
    }

    #[test]
    fn reasons_that_differ_in_numbers_are_one() {
        for (reason, is) in [
            ("HTTP 404: no order 70123", "HTTP 404: no order #"),
            ("HTTP 404: no order 7", "HTTP 404: no order #"),
            ("order:70123 (2026-11-22)", "order:# (#)"),
            ("no 550e8400-e29b-41d4-a716-446655440000!", "no #!"),
            ("no answer within 30s", "no answer within #"),
            ("no answer within 5 s", "no answer within # s"),
            ("row 12 of 345", "row # of #"),
            ("status 503", "status 503"),
            ("status code 503", "status code 503"),
            (
                "declined by acquirer-296, code 189",
                "declined by acquirer-#, code #",
            ),
            (
                "declined by acquirer-7, code 9",
                "declined by acquirer-#, code #",
            ),
            ("550 no such user", "550 no such user"),
            ("utf-8 expected, v2", "utf-8 expected, v2"),
            ("", ""),
        ] {
            assert_eq!(pattern(reason), is);
        }
    }
}
