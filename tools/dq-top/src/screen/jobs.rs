//! A page of the jobs of one state, in that state's order.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use ratatui::Frame;

use super::theme::Theme;
use crate::app::view::QueueView;
use crate::app::App;
use dq_watch::model::column::Tone;
use dq_watch::read::detail::{PeekedJob, State};
use dq_watch::text::{escape, units};

const AT: usize = 12;
const ATTEMPTS: usize = 5;
const PRIORITY: usize = 6;
const SIZE: usize = 6;
/// Below this width reasons are all that fits.
const NARROW: usize = 60;

pub fn draw(frame: &mut Frame, area: Rect, app: &App, view: &QueueView, theme: Theme) {
    let width = area.width as usize;
    let jobs = view.jobs.as_deref().unwrap_or_default();
    let id_width = id_width(jobs, width);
    let mut lines = vec![titles(view, id_width, width, theme)];
    for (place, job) in jobs.iter().enumerate() {
        let selected = place == view.selected;
        lines.push(line(
            job,
            selected,
            id_width,
            width,
            app.now().server_ms,
            view,
            theme,
        ));
    }
    if let Some(refusal) = &view.refusal {
        let text = format!(" {}", escape::line(refusal.as_bytes()));
        lines.push(Line::styled(text, theme.tone(Tone::Warn)));
    } else if jobs.is_empty() {
        let text = match view.jobs {
            None => " ...",
            Some(_) => " No such jobs.",
        };
        lines.push(Line::styled(text, theme.label()));
    }
    frame.render_widget(Paragraph::new(lines), area);
}

/// The width of ids: at most a third of the screen; the payload gets the rest.
fn id_width(jobs: &[PeekedJob], width: usize) -> usize {
    use unicode_width::UnicodeWidthStr;
    let longest = jobs.iter().map(|job| escape::name(&job.id).width()).max();
    longest.unwrap_or(0).clamp(8, (width / 3).max(8))
}

/// What it died of matters more than its figures.
fn is_dead(view: &QueueView) -> bool {
    view.state() == Some(State::Dead)
}

fn titles<'a>(view: &QueueView, id_width: usize, width: usize, theme: Theme) -> Line<'a> {
    let at = match view.state() {
        Some(State::Reserved) => "LEASE ENDS",
        Some(State::Dead) => "DIED",
        Some(State::Done) => "FINISHED",
        _ => "DUE",
    };
    let first = format!(" {} {at:<AT$}", escape::pad("ID", id_width));
    let left = match is_dead(view) {
        true if width < NARROW => format!("{first} WHY"),
        true => format!("{first} {:>ATTEMPTS$} REASON, PAYLOAD", "TRIES"),
        false => format!(
            "{first} {:>ATTEMPTS$} {:>PRIORITY$} {:>SIZE$} PAYLOAD",
            "TRIES", "PRIO", "BYTES"
        ),
    };
    let page = match (view.page_number(), view.more) {
        (1, None) => String::new(),
        (number, None) => format!("page {number}, the last "),
        (number, Some(_)) => format!("page {number} "),
    };
    let left = escape::pad(&left, width.saturating_sub(page.len()));
    Line::from(vec![
        Span::styled(left, theme.title()),
        Span::styled(page, theme.label()),
    ])
}

fn line<'a>(
    job: &PeekedJob,
    selected: bool,
    id_width: usize,
    width: usize,
    now_ms: i64,
    view: &QueueView,
    theme: Theme,
) -> Line<'a> {
    let style = |tone: Tone| match selected {
        true => theme.selected(theme.tone(tone)),
        false => theme.tone(tone),
    };
    let at_tone = match view.state() {
        Some(State::Delayed) => Tone::Note,
        Some(State::Dead) => Tone::Bad,
        _ => Tone::Plain,
    };
    let (attempts, priority) = (job.attempts, job.priority);
    let size = units::count(job.payload.length as u64);
    let figures = match is_dead(view) {
        true if width < NARROW => " ".to_owned(),
        true => format!(" {attempts:>ATTEMPTS$} "),
        false => format!(" {attempts:>ATTEMPTS$} {priority:>PRIORITY$} {size:>SIZE$} "),
    };
    let used = 1 + id_width + 1 + AT + figures.len();
    let mut payload = escape::line(&job.payload.bytes);
    if let Some(reason) = view.reasons.get(&job.id) {
        payload = format!("{}, {payload}", escape::line(reason));
    }
    if job.payload.is_cut() {
        payload.push('…');
    }
    let payload = escape::pad(&payload, width.saturating_sub(used));
    let at = job.at_ms.map(|at_ms| units::relative(at_ms, now_ms));
    let at = escape::pad(&at.unwrap_or_else(|| "-".to_owned()), AT);
    Line::from(vec![
        Span::styled(if selected { "▌" } else { " " }, style(Tone::Note)),
        Span::styled(
            escape::pad(&escape::name(&job.id), id_width),
            style(Tone::Plain),
        ),
        Span::styled(format!(" {at}"), style(at_tone)),
        Span::styled(figures, style(Tone::Plain)),
        Span::styled(payload, style(Tone::Quiet)),
    ])
}
