//! Patterns as SCAN takes them: `*`, `?`, `[abc]`, `[^a-z]`, and `\` before what is meant literally.

/// Whether the whole text matches.
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    // Where to go on from when what follows the latest `*` does not match after all: one byte more
    // for the star. Earlier stars need no second try, so this takes |pattern| * |text| steps at most.
    let mut retry: Option<(usize, usize)> = None;
    let (mut p, mut t) = (0, 0);
    while t < text.len() {
        if pattern.get(p) == Some(&b'*') {
            retry = Some((p + 1, t));
            p += 1;
        } else if let Some(next) = match_one(pattern, p, text[t]) {
            (p, t) = (next, t + 1);
        } else if let Some((star, from)) = retry {
            retry = Some((star, from + 1));
            (p, t) = (star, from + 1);
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|&byte| byte == b'*')
}

/// Where the pattern continues, if its element at `p` matches the byte.
fn match_one(pattern: &[u8], p: usize, byte: u8) -> Option<usize> {
    match *pattern.get(p)? {
        b'?' => Some(p + 1),
        b'[' => match_class(pattern, p + 1, byte),
        b'\\' if p + 1 < pattern.len() => (pattern[p + 1] == byte).then_some(p + 2),
        literal => (literal == byte).then_some(p + 1),
    }
}

/// A class that is not closed ends with the pattern.
fn match_class(pattern: &[u8], mut p: usize, byte: u8) -> Option<usize> {
    let negated = pattern.get(p) == Some(&b'^');
    p += usize::from(negated);
    let mut found = false;
    while p < pattern.len() && pattern[p] != b']' {
        let escaped = pattern[p] == b'\\' && p + 1 < pattern.len();
        p += usize::from(escaped);
        let first = pattern[p];
        let is_range = !escaped && p + 2 < pattern.len() && pattern[p + 1] == b'-';
        let last = if is_range { pattern[p + 2] } else { first };
        found |= (first.min(last)..=first.max(last)).contains(&byte);
        p += if is_range { 3 } else { 1 };
    }
    (found != negated).then_some((p + 1).min(pattern.len()))
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("*", "", true),
            ("a*c", "abbc", true),
            ("a*c", "abbcd", false),
            ("*a*b*", "xxaxxbxx", true),
            ("h?llo", "hello", true),
            ("h[ae]llo", "hallo", true),
            ("h[^e]llo", "hello", false),
            ("[a-c]x", "bx", true),
            ("[c-a]x", "bx", true),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("[\\]]", "]", true),
            ("[ab", "a", true),
            ("a\\", "a\\", true),
        ] {
            assert_eq!(
                matches(pattern.as_bytes(), text.as_bytes()),
                expected,
                "{pattern} {text}"
            );
        }
        let (pattern, text) = ("a*".repeat(500) + "b", "a".repeat(1000));
        assert!(!matches(pattern.as_bytes(), text.as_bytes()), "and soon");
    }

    enum Element {
        Star,
        Any,
        /// Ranges, and whether they are those of what does not match.
        Class(Vec<(u8, u8)>, bool),
    }

    /// The class that begins here, and what comes behind it.
    fn class(mut rest: &[u8]) -> (Element, &[u8]) {
        let negated = rest.first() == Some(&b'^');
        rest = &rest[usize::from(negated)..];
        let mut ranges = Vec::new();
        loop {
            rest = match *rest {
                [] | [b']'] => return (Element::Class(ranges, negated), &[]),
                [b']', ref behind @ ..] => return (Element::Class(ranges, negated), behind),
                [b'\\', one, ref behind @ ..] => {
                    ranges.push((one, one));
                    behind
                }
                [one, b'-', other, ref behind @ ..] => {
                    ranges.push((one.min(other), one.max(other)));
                    behind
                }
                [one, ref behind @ ..] => {
                    ranges.push((one, one));
                    behind
                }
            };
        }
    }

    fn elements(pattern: &[u8]) -> Vec<Element> {
        let (mut all, mut rest) = (Vec::new(), pattern);
        while let [first, behind @ ..] = rest {
            let (element, behind) = match (first, behind) {
                (b'*', _) => (Element::Star, behind),
                (b'?', _) => (Element::Any, behind),
                (b'[', _) => class(behind),
                (b'\\', [one, behind @ ..]) | (one, behind) => {
                    (Element::Class(vec![(*one, *one)], false), behind)
                }
            };
            all.push(element);
            rest = behind;
        }
        all
    }

    fn matches_naively(elements: &[Element], text: &[u8]) -> bool {
        let Some((element, behind)) = elements.split_first() else {
            return text.is_empty();
        };
        let is_next = |byte: u8| match element {
            Element::Star => false,
            Element::Any => true,
            Element::Class(ranges, negated) => {
                ranges
                    .iter()
                    .any(|(from, to)| (*from..=*to).contains(&byte))
                    != *negated
            }
        };
        if matches!(element, Element::Star) {
            return (0..=text.len()).any(|passed| matches_naively(behind, &text[passed..]));
        }
        text.split_first()
            .is_some_and(|(&byte, rest)| is_next(byte) && matches_naively(behind, rest))
    }

    /// All words of up to so many of these letters.
    fn words(letters: &[u8], longest: usize) -> Vec<Vec<u8>> {
        let mut all = vec![Vec::new()];
        let mut from = 0;
        for _ in 0..longest {
            let end = all.len();
            for at in from..end {
                for &letter in letters {
                    all.push([&all[at][..], &[letter]].concat());
                }
            }
            from = end;
        }
        all
    }

    #[test]
    fn all_small_patterns_agree_with_a_naive_reading() {
        let texts = words(b"abc-^]\\", 2);
        for pattern in words(b"ac*?[]^-\\", 5) {
            let elements = elements(&pattern);
            for text in &texts {
                assert_eq!(
                    matches(&pattern, text),
                    matches_naively(&elements, text),
                    "{} {}",
                    pattern.escape_ascii(),
                    text.escape_ascii()
                );
            }
        }
    }
}
