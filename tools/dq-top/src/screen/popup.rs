//! Boxes over the screen: questions, and help.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Padding, Paragraph};
use ratatui::Frame;
use unicode_width::UnicodeWidthStr;

use super::theme::Theme;
use crate::app::prompt::{Kind, Prompt};
use crate::app::App;
use dq_watch::model::column::Tone;
use dq_watch::text::escape;

pub fn prompt(frame: &mut Frame, screen: Rect, prompt: &Prompt, theme: Theme) {
    let mut lines: Vec<Line> = prompt
        .lines
        .iter()
        .map(|line| Line::raw(line.clone()))
        .collect();
    if prompt.has_input() {
        let typed = escape::line(prompt.typed.as_bytes());
        lines.push(Line::raw(""));
        lines.push(Line::from(vec![
            Span::styled("> ", theme.title()),
            Span::raw(typed),
            Span::styled("█", theme.label()),
        ]));
    }
    lines.push(Line::raw(""));
    lines.push(Line::styled(prompt.hint(), theme.label()));
    let danger = matches!(prompt.kind, Kind::ConfirmWord { .. });
    let style = match (&prompt.kind, danger) {
        (_, true) => theme.tone(Tone::Bad),
        (Kind::Filter, _) => theme.title(),
        _ => theme.tone(Tone::Warn),
    };
    boxed(frame, screen, lines, prompt.title, style, 56);
}

fn boxed(
    frame: &mut Frame,
    screen: Rect,
    lines: Vec<Line>,
    title: &str,
    style: ratatui::style::Style,
    least: u16,
) {
    let widest = lines.iter().map(Line::width).max().unwrap_or(0) as u16;
    let width = (widest + 4).max(least).min(screen.width);
    let height = (lines.len() as u16 + 2).min(screen.height);
    let area = Rect {
        x: (screen.width - width) / 2,
        y: (screen.height - height) / 2,
        width,
        height,
    };
    let block = Block::bordered()
        .title(Span::styled(format!(" {title} "), style))
        .border_style(style)
        .padding(Padding::horizontal(1));
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

const KEYS: [(&str, &str); 19] = [
    ("", "The table"),
    ("↑ ↓ PgUp PgDn", "select a queue; Home, End"),
    (
        "← →",
        "sort by another column, or trouble first; r reverses",
    ),
    ("/", "filter by name; Esc shows all"),
    ("Enter", "open the queue"),
    ("", "A queue"),
    ("Tab  1 to 8", "overview, its jobs by state, who works"),
    ("PgDn PgUp Home", "next page of jobs, previous, first"),
    ("Enter", "look at the job; x shows its payload in hex"),
    ("Esc", "back"),
    ("", "Acts; each asks before it does anything"),
    ("p", "pause the queue, or resume it"),
    (
        "K  k",
        "kick all its dead jobs; this dead, done or blocked one",
    ),
    ("n  s", "run this job now; at another time"),
    ("d", "delete this job"),
    ("g", "give back what a worker has, without counting it"),
    ("P", "purge the jobs of this tab; all, in the overview"),
    ("", "LATE50, LATE99: half, 99 % of the last deliveries"),
    ("", "were not later after their due. OLDEST: ready so long."),
];

pub fn help(frame: &mut Frame, screen: Rect, app: &App, theme: Theme) {
    let mut lines: Vec<Line> = Vec::new();
    for (key, what) in KEYS {
        lines.push(match key {
            "" => Line::styled(what, theme.title()),
            key => {
                let fill = " ".repeat(16usize.saturating_sub(key.width()));
                Line::from(vec![
                    Span::styled(key, theme.key()),
                    Span::raw(fill),
                    Span::raw(what),
                ])
            }
        });
    }
    if app.read_only {
        lines.push(Line::styled(
            "--read-only: the acts are switched off",
            theme.tone(Tone::Warn),
        ));
    }
    boxed(frame, screen, lines, "Keys", theme.title(), 60);
}
