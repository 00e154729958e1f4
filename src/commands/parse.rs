//! Reading a command's arguments.

use crate::queue::add::When;
use crate::queue::job::{State, INSTANT_MAX, LADDER_MAX};
use crate::server::api::{Args, Refusal};

pub const SYNTAX: &str = "ERR syntax error";
pub const OUT_OF_RANGE: &str = "ERR value is not an integer or out of range";

pub fn syntax_error() -> Refusal {
    Refusal(SYNTAX.into())
}

pub fn out_of_range() -> Refusal {
    Refusal(OUT_OF_RANGE.into())
}

pub fn wrong_arity(args: Args<'_>) -> Refusal {
    let name = args.get(0).unwrap_or_default().to_ascii_lowercase();
    let name = String::from_utf8_lossy(&name);
    Refusal(format!("ERR wrong number of arguments for '{name}' command").into())
}

/// Refuses a command of fewer arguments, its name counted.
pub fn at_least(args: Args<'_>, len: usize) -> Result<(), Refusal> {
    if args.len() < len {
        return Err(wrong_arity(args));
    }
    Ok(())
}

pub fn exactly(args: Args<'_>, len: usize) -> Result<(), Refusal> {
    if args.len() != len {
        return Err(wrong_arity(args));
    }
    Ok(())
}

/// A decimal integer as the server itself takes one: no plus sign, no spaces, no leading zeros.
pub fn integer(bytes: &[u8]) -> Result<i64, Refusal> {
    let digits = bytes.strip_prefix(b"-").unwrap_or(bytes);
    let leads = match digits {
        b"0" => digits.len() == bytes.len(),
        [first, ..] => *first != b'0',
        [] => false,
    };
    // As many digits as fit a u64, whatever they are.
    if !leads || digits.len() > 19 {
        return Err(out_of_range());
    }
    let mut magnitude = 0;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return Err(out_of_range());
        }
        magnitude = magnitude * 10 + u64::from(digit);
    }
    let signed = if digits.len() < bytes.len() {
        0i64.checked_sub_unsigned(magnitude)
    } else {
        0i64.checked_add_unsigned(magnitude)
    };
    signed.ok_or_else(out_of_range)
}

/// 0 or more.
pub fn natural(bytes: &[u8]) -> Result<u64, Refusal> {
    u64::try_from(integer(bytes)?).map_err(|_| out_of_range())
}

/// 1 or more.
pub fn positive(bytes: &[u8]) -> Result<u64, Refusal> {
    natural(bytes).and_then(|n| if n == 0 { Err(out_of_range()) } else { Ok(n) })
}

pub fn natural_u32(bytes: &[u8]) -> Result<u32, Refusal> {
    u32::try_from(natural(bytes)?).map_err(|_| out_of_range())
}

/// A duration in ms, or an instant.
pub fn millis(bytes: &[u8]) -> Result<u64, Refusal> {
    natural(bytes).and_then(|ms| {
        if ms > INSTANT_MAX {
            Err(out_of_range())
        } else {
            Ok(ms)
        }
    })
}

/// A duration in ms that is not 0.
pub fn positive_millis(bytes: &[u8]) -> Result<u64, Refusal> {
    positive(bytes)?;
    millis(bytes)
}

pub fn priority(bytes: &[u8]) -> Result<i32, Refusal> {
    i32::try_from(integer(bytes)?).map_err(|_| out_of_range())
}

pub fn state(word: &[u8]) -> Option<State> {
    let named = |state: &State| word.eq_ignore_ascii_case(state.name().as_bytes());
    State::ALL.into_iter().find(named)
}

/// Options behind the positional arguments: words with their values, in any order, each at most
/// once.
pub struct Options<'a> {
    args: Args<'a>,
    next: usize,
    known: &'static [&'static str],
    /// A bit for each of the known words.
    seen: u32,
}

impl<'a> Options<'a> {
    pub fn new(args: Args<'a>, first: usize, known: &'static [&'static str]) -> Self {
        Options {
            args,
            next: first,
            known,
            seen: 0,
        }
    }

    /// The next option's word, one of those known; `None` at the end.
    pub fn word(&mut self) -> Result<Option<&'static str>, Refusal> {
        let Some(word) = self.args.get(self.next) else {
            return Ok(None);
        };
        self.next += 1;
        // Many are as long as others: most of those differ in their first letter.
        let first = word.first().map(u8::to_ascii_uppercase);
        let is_it = |known: &&str| {
            let known = known.as_bytes();
            known.len() == word.len()
                && known.first().copied() == first
                // Nearly all write them in capitals.
                && (word == known || word.eq_ignore_ascii_case(known))
        };
        let index = self.known.iter().position(is_it).ok_or_else(syntax_error)?;
        if self.seen & 1 << index != 0 {
            return Err(syntax_error());
        }
        self.seen |= 1 << index;
        Ok(Some(self.known[index]))
    }

    /// Refuses a second one of options that exclude each other.
    pub fn only_one_of(&self, words: &[&str]) -> Result<(), Refusal> {
        let excludes =
            |(index, word): (usize, &&str)| self.seen & 1 << index != 0 && words.contains(word);
        let known = self.known.iter().enumerate();
        if self.seen.count_ones() > 1 && known.filter(|&known| excludes(known)).count() > 1 {
            return Err(syntax_error());
        }
        Ok(())
    }

    pub fn value(&mut self) -> Result<&'a [u8], Refusal> {
        let value = self.args.get(self.next).ok_or_else(syntax_error)?;
        self.next += 1;
        Ok(value)
    }

    /// `n` and then as many delays, each of 1 ms or more.
    pub fn ladder(&mut self) -> Result<Vec<u64>, Refusal> {
        let len = natural(self.value()?)?;
        if len > (self.args.len() - self.next) as u64 {
            return Err(syntax_error());
        }
        if len > LADDER_MAX as u64 {
            return Err(crate::queue::error::QueueError::LadderLength.into());
        }
        (0..len).map(|_| positive_millis(self.value()?)).collect()
    }

    /// What follows DELAY or AT.
    pub fn when(&mut self, word: &str) -> Result<When, Refusal> {
        let ms = millis(self.value()?)?;
        Ok(if word == "AT" {
            When::At(ms)
        } else {
            When::Delay(ms)
        })
    }
}
