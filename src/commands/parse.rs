//! Reading a command's arguments.

use crate::queue::add::Add;
use crate::queue::attr::{Attr, Attrs, Home, Kind};
use crate::queue::clock::Now;
use crate::queue::job::{State, INSTANT_MAX, LADDER_MAX};
use crate::server::api::command_info::OptionWord;
use crate::server::api::{shown, Args, Refusal};
use std::fmt::Display;
use std::marker::PhantomData;

pub const OUT_OF_RANGE: &str = "ERR value is not an integer or out of range";

/// Says what was wrong, and what was expected.
#[cold]
pub fn syntax_error(what: impl Display) -> Refusal {
    Refusal(format!("ERR syntax error, {what}").into())
}

/// The error for a word that is not one of those expected.
#[cold]
pub fn unexpected(word: &[u8], expected: &[&str]) -> Refusal {
    let expected = match expected {
        [rest @ .., last] if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => expected.concat(),
    };
    syntax_error(format_args!("expected {expected}, not '{}'", shown(word)))
}

pub fn out_of_range() -> Refusal {
    Refusal(OUT_OF_RANGE.into())
}

pub fn wrong_arity(args: Args<'_>) -> Refusal {
    let name = args.get(0).unwrap_or_default().to_ascii_lowercase();
    let name = String::from_utf8_lossy(&name);
    Refusal(format!("ERR wrong number of arguments for '{name}' command").into())
}

/// Refuses a command with fewer arguments, counting its name.
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

/// The ids that end a command, each with the arguments that belong to it; or `IDS n` and then these, so that no id can
/// be taken for a word.
pub struct Ids<'a> {
    args: Args<'a>,
    first: usize,
    /// How many arguments there are for each id, itself included.
    step: usize,
    /// The `n` of IDS.
    count: Option<usize>,
}

impl<'a> Ids<'a> {
    pub fn read(args: Args<'a>, first: usize, step: usize) -> Result<Self, Refusal> {
        if is_ids(args.get(first).unwrap_or_default()) {
            return Self::counted(args, first + 1, step);
        }
        at_least(args, first + step)?;
        Ok(Ids {
            args,
            first,
            step,
            count: None,
        })
    }

    /// After the word IDS, with the index of `n`.
    pub fn counted(args: Args<'a>, number: usize, step: usize) -> Result<Self, Refusal> {
        at_least(args, number + 1)?;
        let count = positive(args.get(number).unwrap_or_default())?;
        let first = number + 1;
        let follow = args.len() - first;
        if count.checked_mul(step as u64) != Some(follow as u64) {
            return Err(do_not_fit(count, follow, step));
        }
        Ok(Ids {
            args,
            first,
            step,
            count: Some(follow / step),
        })
    }

    pub fn count(&self) -> Option<usize> {
        self.count
    }

    /// The index of each id.
    pub fn indices(&self) -> impl ExactSizeIterator<Item = usize> {
        (self.first..self.args.len()).step_by(self.step)
    }

    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> + '_ {
        self.indices().filter_map(|at| self.args.get(at))
    }
}

pub fn is_ids(word: &[u8]) -> bool {
    word.eq_ignore_ascii_case(b"IDS")
}

#[cold]
fn do_not_fit(count: u64, follow: usize, step: usize) -> Refusal {
    syntax_error(match step {
        1 => format!("IDS {count} needs {count} ids, not {follow}"),
        2 => format!("IDS {count} needs {count} pairs of id and token, and nothing after them"),
        _ => format!("IDS {count} needs {count} ids with token and result, and nothing after them"),
    })
}

/// A decimal integer as the server itself takes one: no plus sign, no spaces, no leading zeros.
pub fn integer(bytes: &[u8]) -> Result<i64, Refusal> {
    let digits = bytes.strip_prefix(b"-").unwrap_or(bytes);
    let leads = match digits {
        b"0" => digits.len() == bytes.len(),
        [first, ..] => *first != b'0',
        [] => false,
    };
    // Any 19 digits fit a u64.
    if !leads || digits.len() > 19 {
        return Err(out_of_range());
    }
    let (mut magnitude, mut rest) = (0, digits);
    while let Some((eight, behind)) = rest.split_first_chunk() {
        let Some(number) = eight_digits(*eight) else {
            return Err(out_of_range());
        };
        (magnitude, rest) = (magnitude * 100_000_000 + number, behind);
    }
    for byte in rest {
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

/// Eight digits at once: instants have 13, delays of hours 8. Adds neighbours up in pairs, then these, then those.
fn eight_digits(text: [u8; 8]) -> Option<u64> {
    const ZEROS: u64 = u64::from_le_bytes(*b"00000000");
    const HIGH_BITS: u64 = u64::from_le_bytes([0x80; 8]);
    const TO_HIGH_BIT: u64 = u64::from_le_bytes([0x7f - b'9'; 8]);
    let text = u64::from_le_bytes(text);
    // Below '0' the subtraction sets a high bit, above '9' the addition does.
    let digits = text.wrapping_sub(ZEROS);
    if (digits | text.wrapping_add(TO_HIGH_BIT)) & HIGH_BITS != 0 {
        return None;
    }
    let pairs = (digits * 10 + (digits >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs * 100 + (pairs >> 16)) & 0x0000_ffff_0000_ffff;
    Some((fours * 10_000 + (fours >> 32)) & 0xffff_ffff)
}

/// 0 or more.
pub fn natural(bytes: &[u8]) -> Result<u64, Refusal> {
    u64::try_from(integer(bytes)?).map_err(|_| out_of_range())
}

/// 1 or more.
pub fn positive(bytes: &[u8]) -> Result<u64, Refusal> {
    natural(bytes).and_then(|n| if n == 0 { Err(out_of_range()) } else { Ok(n) })
}

/// How many bytes of a value are shown.
pub fn prefix(bytes: &[u8]) -> Result<usize, Refusal> {
    natural(bytes).map(|n| usize::try_from(n).unwrap_or(usize::MAX))
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

/// The number of an attribute.
#[inline]
pub fn number_of(attr: Attr, bytes: &[u8]) -> Result<u64, Refusal> {
    let number = natural(bytes)?;
    if !attr.allows(number) {
        return Err(out_of_range());
    }
    Ok(number)
}

pub fn priority(bytes: &[u8]) -> Result<i32, Refusal> {
    i32::try_from(integer(bytes)?).map_err(|_| out_of_range())
}

pub fn state(word: &[u8]) -> Result<State, Refusal> {
    let named = |state: &State| word.eq_ignore_ascii_case(state.name().as_bytes());
    let state = State::ALL.into_iter().find(named);
    state.ok_or_else(|| unexpected(word, &STATES))
}

pub const STATES: [&str; 6] = ["DELAYED", "READY", "RESERVED", "DEAD", "BLOCKED", "DONE"];

/// Options after the positional arguments: words with their values, in any order, each at most once.
pub struct Options<'a, W> {
    args: Args<'a>,
    next: usize,
    /// The index of the last word.
    word: usize,
    /// A bit for each word.
    seen: u32,
    words: PhantomData<W>,
}

/// The options of one command: an enum that [`options`](super::options) makes.
pub trait Words: Copy + 'static {
    /// All options, in the order of the table.
    const ALL: &'static [Self];
    const KNOWN: &'static [OptionWord];
    /// The options that begin with each letter, a bit for each.
    const BY_LETTER: [u32; 26] = by_letter(Self::KNOWN);
    fn bit(self) -> u32;
}

impl<'a, W: Words> Options<'a, W> {
    pub fn new(args: Args<'a>, first: usize) -> Self {
        Options {
            args,
            next: first,
            word: first,
            seen: 0,
            words: PhantomData,
        }
    }

    /// The next option; `None` at the end.
    pub fn word(&mut self) -> Result<Option<W>, Refusal> {
        let Some(word) = self.args.get(self.next) else {
            return Ok(None);
        };
        self.word = self.next;
        self.next += 1;
        let index = position(word, W::KNOWN, &W::BY_LETTER).unwrap_or(usize::MAX);
        let option = *W::ALL.get(index).ok_or_else(|| unknown::<W>(word))?;
        let bit = 1 << index;
        debug_assert!(option.bit() == bit, "a word that is known by another bit");
        if self.seen & bit != 0 {
            return Err(self.twice());
        }
        self.seen |= bit;
        Ok(Some(option))
    }

    /// Whether any of these words was given.
    #[inline(always)]
    pub fn has_any(&self, words: &[W]) -> bool {
        self.seen & words.iter().fold(0, |bits, word| bits | word.bit()) != 0
    }

    /// Whether at least two words were given, which might exclude each other.
    #[inline(always)]
    pub fn has_several(&self) -> bool {
        self.seen & self.seen.wrapping_sub(1) != 0
    }

    /// Refuses a second one of options that exclude each other.
    #[inline(always)]
    pub fn only_one_of(&self, words: &[W]) -> Result<(), Refusal> {
        let bits = words.iter().fold(0, |bits, word| bits | word.bit());
        let given = self.seen & bits;
        if given & given.wrapping_sub(1) != 0 {
            return Err(exclusive::<W>(self.seen & bits));
        }
        Ok(())
    }

    #[inline]
    pub fn value(&mut self) -> Result<&'a [u8], Refusal> {
        let Some(value) = self.args.get(self.next) else {
            return Err(self.no_value());
        };
        self.next += 1;
        Ok(value)
    }

    #[cold]
    fn no_value(&self) -> Refusal {
        syntax_error(format_args!("a value is missing after {}", self.name()))
    }

    #[cold]
    fn twice(&self) -> Refusal {
        syntax_error(format_args!("{} is given twice", self.name()))
    }

    /// The last word, as a message shows it.
    fn name(&self) -> String {
        shown(self.args.get(self.word).unwrap_or_default()).to_ascii_uppercase()
    }

    /// The value of what a job may have, to where `add` has it.
    #[inline]
    #[allow(clippy::wildcard_enum_match_arm, reason = "all others have tags")]
    pub fn said(&mut self, attr: Attr, add: &mut Add<'a>) -> Result<(), Refusal> {
        match attr.row().home {
            Home::Priority => add.priority = priority(self.value()?)?,
            Home::Ttr => add.ttr_ms = Some(number_of(attr, self.value()?)?),
            Home::Attempts => add.max_attempts = Some(number_of(attr, self.value()?)? as u32),
            Home::Expires => add.ttl_ms = Some(number_of(attr, self.value()?)?),
            Home::Group => add.group = Some(self.value()?),
            Home::Tag(_) => {
                add.said = self.tagged(attr, std::mem::replace(&mut add.said, Attrs::NONE))?;
            }
        }
        Ok(())
    }

    /// The value of an attribute, beside those that were given before.
    fn tagged(&mut self, attr: Attr, before: Attrs<'a>) -> Result<Attrs<'a>, Refusal> {
        match attr.row().kind {
            Kind::Number { .. } => Ok(before.with_number(attr, number_of(attr, self.value()?)?)),
            Kind::Ladder => Ok(before.with_backoff(&self.ladder()?)),
            Kind::Text(most) => {
                let text = self.value()?;
                if !(1..=most).contains(&text.len()) {
                    let name = self.name();
                    let text = format!("ERR {name} must be 1 to {most} bytes long");
                    return Err(Refusal(text.into()));
                }
                Ok(before.with_text(attr, text))
            }
        }
    }

    /// `n` and then as many delays, each of 1 ms or more.
    pub fn ladder(&mut self) -> Result<Vec<u64>, Refusal> {
        let len = natural(self.value()?)?;
        let follow = self.args.len() - self.next;
        if len > follow as u64 {
            let name = self.name();
            return Err(syntax_error(format_args!(
                "{name} {len} needs {len} delays, but {follow} arguments follow"
            )));
        }
        if len > LADDER_MAX as u64 {
            return Err(crate::queue::error::QueueError::LadderLength.into());
        }
        (0..len).map(|_| positive_millis(self.value()?)).collect()
    }

    /// As [`Options::ladder`]; `None` for the word DEFAULT.
    pub fn ladder_or_default(&mut self) -> Result<Option<Vec<u64>>, Refusal> {
        let next = self.args.get(self.next).unwrap_or_default();
        if next.eq_ignore_ascii_case(b"DEFAULT") {
            return self.value().map(|_| None);
        }
        self.ladder().map(Some)
    }
}

#[cold]
fn unknown<W: Words>(word: &[u8]) -> Refusal {
    let known: Vec<_> = W::KNOWN.iter().map(|known| known.text).collect();
    unexpected(word, &known)
}

/// The error for options that exclude each other, given as bits.
#[cold]
fn exclusive<W: Words>(given: u32) -> Refusal {
    let words = W::ALL.iter().zip(W::KNOWN);
    let given = words.filter(|(word, _)| given & word.bit() != 0);
    let names: Vec<_> = given.map(|(_, known)| known.text).collect();
    syntax_error(format_args!("{} cannot be combined", names.join(" and ")))
}

const fn by_letter(known: &[OptionWord]) -> [u32; 26] {
    let mut letters = [0; 26];
    let mut at = 0;
    while at < known.len() {
        letters[(known[at].text.as_bytes()[0] - b'A') as usize] |= 1 << at;
        at += 1;
    }
    letters
}

fn position(word: &[u8], known: &[OptionWord], by_letter: &[u32; 26]) -> Option<usize> {
    let letter = word.first()?.to_ascii_uppercase().wrapping_sub(b'A');
    let mut left = *by_letter.get(usize::from(letter))?;
    while left != 0 {
        let at = left.trailing_zeros() as usize;
        let text = known.get(at)?.text.as_bytes();
        // Most clients send them in capitals.
        if word == text || word.eq_ignore_ascii_case(text) {
            return Some(at);
        }
        left &= left - 1;
    }
    None
}

/// The timeout of a blocking command: seconds as a float, as BLPOP takes them.
pub fn timeout(seconds: &[u8]) -> Option<f64> {
    std::str::from_utf8(seconds).ok()?.parse().ok()
}

/// The instant at which a wait of so many seconds ends; u64::MAX for 0, which is for ever.
pub fn end_of_wait(seconds: &[u8], now: Now) -> Result<u64, Refusal> {
    const NO_FLOAT: &str = "ERR timeout is not a float or out of range";
    // What most workers say.
    if seconds == b"0" {
        return Ok(u64::MAX);
    }
    let seconds = timeout(seconds).filter(|&seconds| seconds < f64::INFINITY);
    let seconds = seconds.ok_or(Refusal(NO_FLOAT.into()))?;
    if seconds < 0.0 {
        return Err(Refusal("ERR timeout is negative".into()));
    }
    if seconds == 0.0 {
        return Ok(u64::MAX);
    }
    let us = seconds * 1e6;
    if us > (i64::MAX / 2) as f64 {
        return Err(Refusal(NO_FLOAT.into()));
    }
    Ok((now.us() + us.ceil() as u64).div_ceil(1000))
}
