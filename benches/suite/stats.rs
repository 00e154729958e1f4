//! Medians and the like.

pub fn sorted(values: &[f64]) -> Vec<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values
}

/// The value that `part` (0 to 1) of all do not exceed.
pub fn percentile(values: &[f64], part: f64) -> f64 {
    let values = sorted(values);
    let rank = (values.len() as f64 * part).ceil() as usize;
    values[rank.clamp(1, values.len()) - 1]
}

pub fn median(values: &[f64]) -> f64 {
    let values = sorted(values);
    let (low, high) = ((values.len() - 1) / 2, values.len() / 2);
    (values[low] + values[high]) / 2.0
}

pub fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

pub fn most(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}
