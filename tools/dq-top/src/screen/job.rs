//! One job: its fields, and its payload and result as text or in hex.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use ratatui::Frame;

use super::theme::{labelled, Theme};
use crate::app::view::{JobView, QueueView};
use crate::app::App;
use dq_watch::model::column::Tone;
use dq_watch::read::detail::{first_few, After, Attempt, Cut, Ended, Job, Rule, Step};
use dq_watch::read::said;
use dq_watch::text::{escape, units};

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
    let [payload, result] = view.body(width);
    let raw = |line: String| Line::raw(format!(" {line}"));
    let mut body: Vec<Line> = payload.into_iter().map(raw).collect();
    if let Some(cut) = &job.result {
        body.push(title("RESULT", cut, view, "", theme));
        body.extend(result.into_iter().map(raw));
    }
    let scroll = view.scroll.min(body.len().saturating_sub(body_height));
    let part = match body.len() > body_height {
        true => format!(
            "   lines {} to {} of {}",
            scroll + 1,
            (scroll + body_height).min(body.len()),
            body.len()
        ),
        false => String::new(),
    };
    head.push(title("PAYLOAD", &job.payload, view, &part, theme));
    head.extend(body.into_iter().skip(scroll).take(body_height));
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
    ];
    let rest = [
        ("why", job.why.as_ref().map(|why| why.line(now_ms))),
        ("works", job.client.as_deref().map(escape::line)),
        ("due", job.due_ms.map(instant)),
        ("started", job.started_ms.map(instant)),
        ("finished", job.finished_ms.map(instant)),
        ("ran for", job.ran_ms().map(units::millis)),
        ("progress", job.progress.as_deref().map(escape::line)),
        ("steps", of_steps(&job.steps)),
        ("awaits", job.awaits.as_deref().map(escape::line)),
        ("waits for", job.after.as_ref().map(of_after)),
        ("ended", of_results(&job.results)),
        ("lease ends", job.deadline_ms.map(instant)),
        ("vanishes", job.expires_ms.map(instant)),
        ("backoff", (!backoff.is_empty()).then(|| backoff.join(" "))),
        ("token", job.token.clone()),
        ("failed", job.failed_ms.map(instant)),
        ("reason", job.reason.as_deref().map(escape::line)),
        ("history", of_history(&job.history)),
        ("group", job.group.as_deref().map(escape::line)),
    ];
    let said = job
        .said
        .iter()
        .map(|it| (it.name, Some(of_said(&it.value))));
    let recurring = job.rule.iter().flat_map(|rule| of_rule(rule, &instant));
    let rest = rest.into_iter().chain(said).chain(recurring);
    let there = rest
        .into_iter()
        .filter_map(|(label, text)| Some((label, text?, Tone::Plain)));
    pairs.extend(there);
    flow(pairs, width, theme)
}

fn of_said(value: &said::Value) -> String {
    match value {
        said::Value::Number(number) => number.to_string(),
        said::Value::Millis(ms) => units::millis(*ms),
        said::Value::Text(text) => escape::line(text),
    }
}

/// The attempts that failed, each with how long it ran.
fn of_history(history: &[Attempt]) -> Option<String> {
    let text = |it: &Attempt| {
        let ran = units::millis((it.ended_ms - it.started_ms).max(0) as u64);
        format!(
            "attempt {} ran {ran} and {}",
            it.attempts,
            it.text(escape::line)
        )
    };
    (!history.is_empty()).then(|| first_few(history.iter().rev().map(text)))
}

/// The job's steps.
fn of_steps(steps: &[Step]) -> Option<String> {
    let text = |step: &Step| {
        let more = if step.value.is_cut() { "…" } else { "" };
        let value = escape::line(&step.value.bytes);
        format!("{} = {value}{more}", escape::name(&step.name))
    };
    (!steps.is_empty()).then(|| first_few(steps.iter().map(text)))
}

fn of_after(after: &After) -> String {
    match after {
        After::Group(_) => after.text(),
        After::Jobs { on_dead, .. } => format!("{} (on dead: {on_dead})", after.text()),
    }
}

/// The jobs that it waited for, with their outcomes.
fn of_results(results: &[Ended]) -> Option<String> {
    let text = |ended: &Ended| {
        let outcome = ended.outcome.as_ref()?;
        Some(format!("{} {outcome}", escape::name(&ended.id)))
    };
    let over: Vec<String> = results.iter().filter_map(text).collect();
    (!over.is_empty()).then(|| first_few(over.into_iter()))
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

/// Puts as many pairs on a line as fit.
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

fn title<'a>(what: &str, cut: &Cut, view: &JobView, part: &str, theme: Theme) -> Line<'a> {
    let kind = if view.hex { "hex" } else { "text" };
    let shown = match cut.is_cut() {
        true => format!(
            ", the first {} of them",
            units::bytes(cut.bytes.len() as u64)
        ),
        false => String::new(),
    };
    let more = if cut.or_more { "more than " } else { "" };
    let bytes = if cut.length == 1 { "byte" } else { "bytes" };
    Line::from(vec![
        Span::styled(format!(" {what} as {kind}"), theme.title()),
        Span::styled(
            format!(
                "   {more}{} {bytes}{shown}{part}",
                cut.length - more.len().min(1)
            ),
            theme.label(),
        ),
    ])
}
