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
    let mut lines = vec![titles(app, view, id_width, width, theme)];
    let height = usize::from(area.height).saturating_sub(1).max(1);
    let top = view.selected / height * height;
    let now_ms = app.now().server_ms;
    for place in (top..jobs.len()).take(height) {
        let columns = columns(view, place, place == top, now_ms, width);
        lines.push(line(view, place, columns, (id_width, width), now_ms, theme));
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

fn titles<'a>(
    app: &App,
    view: &QueueView,
    id_width: usize,
    width: usize,
    theme: Theme,
) -> Line<'a> {
    let at = match view.state() {
        Some(State::Reserved) => "LEASE ENDS",
        Some(State::Dead) => "DIED",
        Some(State::Done) => "FINISHED",
        _ => "DUE",
    };
    let first = format!(" {} {at:<AT$}", escape::pad("ID", id_width));
    let left = match (is_dead(view), view.is_of_workers()) {
        (true, _) if width < NARROW => format!("{first} WHY"),
        (_, true) if width < NARROW => format!("{first} WHO"),
        (true, _) => format!("{first} {:>ATTEMPTS$} REASON, PAYLOAD", "TRIES"),
        (_, true) => format!("{first} {:<AT$} {:>ATTEMPTS$} WHO", "SINCE", "TRIES"),
        _ => format!(
            "{first} {:>ATTEMPTS$} {:>PRIORITY$} {:>SIZE$} PAYLOAD",
            "TRIES", "PRIO", "BYTES"
        ),
    };
    let (number, all) = (
        view.jobs.as_ref().map_or(0, Vec::len),
        app.servers.board.row(&view.key),
    );
    let all = all.map_or(0, |row| row.jobs(State::Reserved as usize));
    let page = match (view.page_number(), view.more) {
        (1, None) => String::new(),
        _ if view.is_of_workers() => format!("{number} of {all} jobs "),
        (number, None) => format!("page {number}, the last "),
        (number, Some(_)) => format!("page {number} "),
    };
    let left = escape::pad(&left, width.saturating_sub(page.len()));
    Line::from(vec![
        Span::styled(left, theme.title()),
        Span::styled(page, theme.label()),
    ])
}

/// Figures of a job, and what fills the line.
fn columns(
    view: &QueueView,
    place: usize,
    is_top: bool,
    now_ms: i64,
    width: usize,
) -> (String, String) {
    let jobs = view.jobs.as_deref().unwrap_or_default();
    let (job, read) = (&jobs[place], |job: &PeekedJob| view.read.get(&job.id));
    let (attempts, priority) = (job.attempts, job.priority);
    if view.is_of_workers() {
        let client = |job: &PeekedJob| read(job).and_then(|job| job.client.as_deref());
        let since = read(job).and_then(|job| job.started_ms);
        let since = escape::pad(&relative(since, now_ms), AT);
        let figures = format!(" {since} {attempts:>ATTEMPTS$} ");
        let is_first = is_top || client(&jobs[place - 1]) != client(job);
        let who = || {
            let count = jobs.iter().filter(|it| client(it) == client(job)).count();
            let plural = if count == 1 { "" } else { "s" };
            let name = client(job).map_or("not known".to_owned(), escape::line);
            format!("{name} ({count} job{plural})")
        };
        let figures = if width < NARROW {
            " ".to_owned()
        } else {
            figures
        };
        return (figures, is_first.then(who).unwrap_or_default());
    }
    let size = units::count(job.payload.length as u64);
    let figures = match is_dead(view) {
        true if width < NARROW => " ".to_owned(),
        true => format!(" {attempts:>ATTEMPTS$} "),
        false => format!(" {attempts:>ATTEMPTS$} {priority:>PRIORITY$} {size:>SIZE$} "),
    };
    let mut payload = escape::line(&job.payload.bytes);
    if let Some(reason) = read(job).and_then(|job| job.reason.as_deref()) {
        payload = format!("{}, {payload}", escape::line(reason));
    }
    if job.payload.is_cut() {
        payload.push('…');
    }
    (figures, payload)
}

fn relative(at_ms: Option<i64>, now_ms: i64) -> String {
    at_ms.map_or("-".to_owned(), |at_ms| units::relative(at_ms, now_ms))
}

fn line<'a>(
    view: &QueueView,
    place: usize,
    (figures, rest): (String, String),
    (id_width, width): (usize, usize),
    now_ms: i64,
    theme: Theme,
) -> Line<'a> {
    let job = &view.jobs.as_deref().unwrap_or_default()[place];
    let selected = place == view.selected;
    let style = |tone: Tone| match selected {
        true => theme.selected(theme.tone(tone)),
        false => theme.tone(tone),
    };
    let at_tone = match view.state() {
        Some(State::Delayed) => Tone::Note,
        Some(State::Dead) => Tone::Bad,
        _ => Tone::Plain,
    };
    let used = 1 + id_width + 1 + AT + figures.len();
    let rest = escape::pad(&rest, width.saturating_sub(used));
    let at = escape::pad(&relative(job.at_ms, now_ms), AT);
    Line::from(vec![
        Span::styled(if selected { "▌" } else { " " }, style(Tone::Note)),
        Span::styled(
            escape::pad(&escape::name(&job.id), id_width),
            style(Tone::Plain),
        ),
        Span::styled(format!(" {at}"), style(at_tone)),
        Span::styled(figures, style(Tone::Plain)),
        Span::styled(rest, style(Tone::Quiet)),
    ])
}
