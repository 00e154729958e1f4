//! Which known kind an unknown one is like.

/// The kind that was meant, if one is like the given one: a third of its letters may differ, at least one.
pub(crate) fn nearest<'a>(given: &str, kinds: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let letters = |kind: &str| kind.to_lowercase().chars().collect::<Vec<_>>();
    let given = letters(given);
    let most = (given.len() / 3).max(1);
    let far = |kind: &'a str| {
        let kind_of = letters(kind);
        let is_close = kind_of.len().abs_diff(given.len()) <= most;
        is_close.then(|| (distance(&given, &kind_of), kind))
    };
    let best = kinds.filter_map(far).min_by_key(|(far, _)| *far);
    best.filter(|(far, _)| *far <= most).map(|(_, kind)| kind)
}

/// How many letters differ; two that have changed places are one mistake.
fn distance(one: &[char], other: &[char]) -> usize {
    let mut before = Vec::new();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.iter().enumerate() {
        let mut next = vec![i + 1];
        for (j, b) in other.iter().enumerate() {
            let changed = row[j] + usize::from(a != b);
            let mut least = changed.min(row[j + 1] + 1).min(next[j] + 1);
            if i > 0 && j > 0 && *a == other[j - 1] && one[i - 1] == *b {
                least = least.min(before[j - 1] + 1);
            }
            next.push(least);
        }
        before = std::mem::replace(&mut row, next);
    }
    row[other.len()]
}

#[test]
fn the_kind_that_was_meant_is_named() {
    let meant = |given| nearest(given, ["double", "send_receipt", "ab"].into_iter());
    assert_eq!(meant("doubles"), Some("double"));
    assert_eq!(meant("SendReceipt"), Some("send_receipt"));
    assert_eq!(meant("ba"), Some("ab"));
    for other in ["dowels", "other", "", &"double".repeat(20)] {
        assert_eq!(meant(other), None, "{other}");
    }
}
