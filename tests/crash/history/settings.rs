//! What a group has of its own: at the end of the run no older than the latest that must have survived, and never what
//! nobody said.

use super::check::{Rule, Verdict};
use super::story::Stories;
use super::What;

pub fn check(stories: &Stories<'_>, verdict: &mut Verdict) {
    let history = stories.history;
    for entry in &history.entries {
        let What::Own(group, own) = &entry.what else {
            continue;
        };
        let sets = history
            .entries
            .iter()
            .filter_map(|entry| match &entry.what {
                What::Set(set) if set.group == *group => Some((entry, set.value)),
                _ => None,
            });
        let certain = sets
            .clone()
            .filter(|(set, _)| history.is_certain(set, entry.life));
        let least = certain.map(|(_, value)| value).max().unwrap_or(0);
        verdict.tally.settings += u64::from(least > 0);
        let was_said = *own == 0 || sets.clone().any(|(_, value)| value == *own);
        if *own < least || !was_said {
            let text = format!("{group} has {own} of its own, {least} at least");
            verdict.fault(Rule::Setting, text);
        }
    }
}
