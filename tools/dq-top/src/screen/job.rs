//! One job: its fields, and its payload as text or in hex.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use ratatui::Frame;

use super::labelled;
use super::theme::Theme;
use crate::app::view::{JobView, QueueView};
use crate::app::App;
use crate::model::column::Tone;
use crate::read::detail::{Job, Rule};
use crate::text::{escape, units};

pub fn draw(
    frame: &mut Frame,
    area: Rect,
    app: &App,
    queue: &QueueView,
    view: &JobView,
    theme: Theme,
) {
    let width = area.width as usize;
    let id = escape::fit(&escape::name(&view.id), width.saturating_sub(8));
    let mut head = vec![Line::from(
        [
            vec![Span::raw(" ")],
            labelled(theme, "job", id, Tone::Plain).to_vec(),
        ]
        .concat(),
    )];
    if let Some(refusal) = &queue.refusal {
        let text = format!(" {}", escape::line(refusal.as_bytes()));
        head.push(Line::styled(text, theme.tone(Tone::Warn)));
    } else if view.gone {
        let text = " This job no longer exists: it was acknowledged or deleted, or it expired.";
        head.push(Line::styled(text, theme.tone(Tone::Warn)));
    }
    let Some(job) = &view.job else {
        frame.render_widget(Paragraph::new(head), area);
        return;
    };
    head.extend(fields(job, app.now().server_ms, width, theme));
    let body_height = (area.height as usize).saturating_sub(head.len() + 1);
    let body = view.payload_lines(width);
    let furthest = body.len().saturating_sub(body_height);
    let scroll = view.scroll.min(furthest);
    head.push(payload_title(
        job,
        view,
        scroll,
        body.len(),
        body_height,
        theme,
    ));
    head.extend(
        body.into_iter()
            .skip(scroll)
            .take(body_height)
            .map(|line| Line::raw(format!(" {line}"))),
    );
    frame.render_widget(Paragraph::new(head), area);
}

fn fields<'a>(job: &Job, now_ms: i64, width: usize, theme: Theme) -> Vec<Line<'a>> {
    let tone = match job.state.as_str() {
        "delayed" => Tone::Note,
        "ready" => Tone::Good,
        "dead" => Tone::Bad,
        _ => Tone::Plain,
    };
    let instant = |ms: i64| format!("{} ({ms})", units::relative(ms, now_ms));
    let attempts = match job.max_attempts {
        0 => format!("{}, no limit", job.attempts),
        most => format!("{} of {most}", job.attempts),
    };
    let backoff: Vec<String> = job.backoff_ms.iter().map(|&ms| units::millis(ms)).collect();
    let mut pairs = vec![
        ("state", job.state.clone(), tone),
        ("priority", job.priority.to_string(), Tone::Plain),
        ("attempts", attempts, Tone::Plain),
        ("ttr", units::millis(job.ttr_ms), Tone::Plain),
        ("due", instant(job.due_ms), Tone::Plain),
    ];
    let rest = [
        ("lease ends", job.deadline_ms.map(instant)),
        ("vanishes", job.expires_ms.map(instant)),
        ("backoff", (!backoff.is_empty()).then(|| backoff.join(" "))),
        ("token", job.token.clone()),
        ("failed", job.failed_ms.map(instant)),
        ("reason", job.reason.as_deref().map(escape::line)),
        ("group", job.group.as_deref().map(escape::line)),
    ];
    let recurring = job.rule.iter().flat_map(|rule| of_rule(rule, &instant));
    let rest = rest.into_iter().chain(recurring);
    let there = rest
        .into_iter()
        .filter_map(|(label, text)| Some((label, text?, Tone::Plain)));
    pairs.extend(there);
    flow(pairs, width, theme)
}

/// The rule and the next runs of a recurring job.
fn of_rule(rule: &Rule, instant: &dyn Fn(i64) -> String) -> Vec<(&'static str, Option<String>)> {
    let next: Vec<String> = rule.next_ms.iter().copied().map(instant).collect();
    vec![
        ("rule", Some(rule.when.text())),
        ("runs", Some(rule.runs.to_string())),
        ("occurrence", Some(instant(rule.occurrence_ms))),
        ("times", rule.times.map(|times| times.to_string())),
        ("until", rule.until_ms.map(instant)),
        ("grace", rule.grace_ms.map(units::millis)),
        ("jitter", rule.jitter_ms.map(units::millis)),
        ("next runs", (!next.is_empty()).then(|| next.join(", "))),
    ]
}

/// As many to a line as fit.
fn flow<'a>(pairs: Vec<(&str, String, Tone)>, width: usize, theme: Theme) -> Vec<Line<'a>> {
    let mut lines: Vec<Line> = Vec::new();
    for (label, text, tone) in pairs {
        let text = escape::fit(&escape::line(text.as_bytes()), width.saturating_sub(16));
        let spans = labelled(theme, label, text, tone);
        let needs = spans.iter().map(Span::width).sum::<usize>() + 3;
        match lines
            .last_mut()
            .filter(|line| line.width() + needs <= width)
        {
            Some(line) => line.spans.push(Span::raw("   ")),
            None => lines.push(Line::from(vec![Span::raw(" ")])),
        }
        if let Some(line) = lines.last_mut() {
            line.spans.extend(spans);
        }
    }
    lines
}

fn payload_title<'a>(
    job: &Job,
    view: &JobView,
    scroll: usize,
    lines: usize,
    height: usize,
    theme: Theme,
) -> Line<'a> {
    let kind = if view.hex { "hex" } else { "text" };
    let cut = match job.payload.is_cut() {
        true => format!(
            ", the first {} of them",
            units::bytes(job.payload.bytes.len() as u64)
        ),
        false => String::new(),
    };
    let part = match lines > height {
        true => format!(
            "   lines {} to {} of {lines}",
            scroll + 1,
            (scroll + height).min(lines)
        ),
        false => String::new(),
    };
    Line::from(vec![
        Span::styled(format!(" PAYLOAD as {kind}"), theme.title()),
        Span::styled(
            format!("   {} bytes{cut}{part}", job.payload.length),
            theme.label(),
        ),
    ])
}
