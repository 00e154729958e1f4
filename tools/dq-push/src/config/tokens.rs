//! Tokens of the configuration file.

use std::collections::HashSet;

use toml::Spanned;

use super::file::FileToken;
use super::reading::Reading;
use crate::inbound::said;
use crate::inbound::tokens::{Rate, Token};

impl Reading<'_> {
    pub fn tokens(&self, listed: Vec<FileToken>) -> Result<Vec<Token>, String> {
        let mut names = HashSet::new();
        let mut tokens = Vec::new();
        for token in listed {
            if token.name.get_ref().is_empty() || !names.insert(token.name.get_ref().clone()) {
                return Err(self.wrong(&token.name, "each token has a name of its own"));
            }
            tokens.push(self.token(token)?);
        }
        Ok(tokens)
    }

    fn token(&self, token: FileToken) -> Result<Token, String> {
        let mut fixed = Vec::new();
        for (name, text) in [("group", token.group), ("label", token.label)] {
            let Some(text) = text else { continue };
            if !(1..=256).contains(&text.get_ref().len()) {
                return Err(self.wrong(&text, format!("{name}: 1 to 256 bytes")));
            }
            fixed.push((name, text.into_inner()));
        }
        let bounds = token.bounds.iter().map(|(name, bound)| {
            let option = said::find(name).filter(|it| it.bounds().is_some());
            let option =
                option.ok_or_else(|| self.wrong(bound, format!("{name}: no number of a job")))?;
            let (least, most) = *bound.get_ref();
            let (floor, ceiling) = option.bounds().unwrap_or_default();
            match floor <= least && least <= most && most <= ceiling {
                true => Ok((option, (least, most))),
                false => Err(self.wrong(
                    bound,
                    format!("{name}: two numbers, from {floor} to {ceiling}"),
                )),
            }
        });
        Ok(Token {
            hash: self.hash(&token.hash)?,
            name: token.name.into_inner(),
            queues: token.queues,
            verbs: token.verbs,
            prefix: token.prefix.into_bytes(),
            fixed,
            bounds: bounds.collect::<Result<_, _>>()?,
            rate: self.rate("rate", token.rate.as_ref())?.map(Rate::new),
        })
    }

    fn hash(&self, said: &Spanned<String>) -> Result<[u8; 32], String> {
        let text = self.value(said)?;
        let hex = text.strip_prefix("sha256:").filter(|it| it.len() == 64);
        let number = |at: usize| {
            let pair = hex?.get(2 * at..2 * at + 2)?;
            u8::from_str_radix(pair, 16).ok()
        };
        let bytes: Option<Vec<u8>> = (0..32).map(number).collect();
        let bytes = bytes.and_then(|it| it.try_into().ok());
        bytes.ok_or_else(|| {
            self.wrong(
                said,
                "hash: sha256: and 64 digits; dq http --new-token makes one",
            )
        })
    }
}
