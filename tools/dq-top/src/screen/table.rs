//! The table of queues: the most important columns that fit, and always the one that it is sorted
//! by.

use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Wrap};
use ratatui::Frame;
use unicode_width::UnicodeWidthStr;

use super::theme::Theme;
use super::trouble;
use crate::app::App;
use dq_watch::model::column::{Column, Now, Tone, ALL};
use dq_watch::model::row::Row;
use dq_watch::text::{escape, units};

/// A name gets at most this width, as long as the trend can use the rest.
const WIDEST_NAME: usize = 48;

/// Columns, each with its width.
type Layout = Vec<(Column, usize)>;

pub fn draw(frame: &mut Frame, area: Rect, app: &App, theme: Theme) {
    let rows = app.rows();
    let shown = &rows[app.top.min(rows.len())..];
    let shown = &shown[..shown.len().min(app.table_rows())];
    let layout = layout(area.width as usize, shown, app);
    let mut lines = vec![titles(&layout, app, theme)];
    let now = app.now();
    lines.extend(shown.iter().map(|row| line(row, &layout, app, now, theme)));
    frame.render_widget(Paragraph::new(lines), area);
}

/// Why there is no row, in the middle of the table's place: above all what is wrong.
pub fn draw_why_empty(frame: &mut Frame, area: Rect, app: &App, theme: Theme) {
    let (text, style) = match trouble(app) {
        Some((text, tone)) => (text, theme.tone(tone)),
        None => (why_empty(app).to_owned(), theme.label()),
    };
    let text = escape::line(text.as_bytes());
    let width = area.width.saturating_sub(8).clamp(1, 72);
    // As many lines as can be needed at most; a word is broken only if it is wider than a line.
    let height = (text.width() as u16 / (width / 2).max(1) + 1).min(area.height.saturating_sub(1));
    let middle = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + 1 + (area.height - 1 - height) / 2,
        width,
        height,
    };
    let words = Paragraph::new(Line::styled(text, style)).centered();
    frame.render_widget(words.wrap(Wrap { trim: true }), middle);
}

fn why_empty(app: &App) -> &'static str {
    let read = |node: &&dq_watch::servers::NodeState| node.figures.is_some() && node.down.is_none();
    match app.servers.nodes.values().filter(read).count() {
        0 => "No figures yet.",
        _ if !app.servers.board.is_empty() => "No queue fits the filter (Esc shows all).",
        _ if app.servers.nodes.values().all(|node| node.complete) => "No queues.",
        _ => "No queue found yet.",
    }
}

/// Leaves room for one space between two columns, and one at the left edge.
fn layout(width: usize, rows: &[&Row], app: &App) -> Layout {
    let mut by_importance = ALL.to_vec();
    by_importance.sort_by_key(|column| match *column {
        Column::Queue => 0,
        sorted if Some(sorted) == app.order.column => 1,
        other => 100 - other.importance(),
    });
    // On a wide screen names get their width before the less important columns, on a narrow one
    // after them.
    let longest = rows
        .iter()
        .map(|row| name_width(row, app))
        .max()
        .unwrap_or(0);
    let name_at_least = match width {
        0..100 => Column::Queue.width(),
        _ => longest.clamp(Column::Queue.width(), width / 4),
    };
    let mut left = width.saturating_sub(1);
    let mut chosen = Vec::new();
    for column in by_importance {
        let needs = match column {
            Column::Queue => name_at_least,
            other => other.width(),
        };
        if left > needs {
            left -= needs + 1;
            chosen.push(column);
        }
    }
    let wider_name = longest.clamp(name_at_least, WIDEST_NAME.max(name_at_least)) - name_at_least;
    let wider_name = wider_name.min(left);
    left -= wider_name;
    let width_of = |column: Column| match column {
        Column::Queue => name_at_least + wider_name,
        Column::Trend => column.width() + left.min(50),
        other => other.width(),
    };
    let fits = ALL.into_iter().filter(|column| chosen.contains(column));
    fits.map(|column| (column, width_of(column))).collect()
}

fn name_width(row: &Row, app: &App) -> usize {
    name(row, app).width()
}

/// The queue's name, with its database if there are several.
fn name(row: &Row, app: &App) -> String {
    let name = escape::name(&row.key.name);
    match app.servers.board.several_dbs() {
        true => format!("{}:{name}", row.key.db),
        false => name,
    }
}

fn titles<'a>(layout: &Layout, app: &App, theme: Theme) -> Line<'a> {
    let mut spans = vec![Span::raw(" ")];
    for &(column, width) in layout {
        let sorted = Some(column) == app.order.column;
        let arrow = match (sorted, app.order.reversed) {
            (true, false) => "▾",
            (true, true) => "▴",
            _ => "",
        };
        let title = format!("{arrow}{}", column.title());
        let style = if sorted {
            theme.sorted()
        } else {
            theme.title()
        };
        spans.extend(aligned(&title, width, column.aligns_left(), style));
        spans.push(Span::raw(" "));
    }
    Line::from(spans)
}

/// The text, and what fills its column: only the text is underlined.
fn aligned<'a>(text: &str, width: usize, left: bool, style: Style) -> [Span<'a>; 2] {
    let text = escape::fit(text, width);
    let fill = " ".repeat(width.saturating_sub(text.width()));
    let fill = Span::styled(fill, style.remove_modifier(Modifier::UNDERLINED));
    let text = Span::styled(text, style);
    match left {
        true => [text, fill],
        false => [fill, text],
    }
}

fn line<'a>(row: &Row, layout: &Layout, app: &App, now: Now, theme: Theme) -> Line<'a> {
    let selected = app.selected.as_ref() == Some(&row.key);
    let stale = row.gone || app.servers.is_down(&row.node);
    let style = |tone: Tone| {
        let style = if stale {
            theme.stale()
        } else {
            theme.tone(tone)
        };
        if selected {
            theme.selected(style)
        } else {
            style
        }
    };
    let mut spans = vec![Span::styled(
        if selected { "▌" } else { " " },
        style(Tone::Note),
    )];
    for &(column, width) in layout {
        let (text, tone) = match column {
            Column::Queue => (name(row, app), name_tone(row)),
            Column::Trend => {
                let bars = units::sparkline(&row.history.delivered.values(), width);
                (bars, Tone::Good)
            }
            other => other.cell(row, now),
        };
        spans.extend(aligned(&text, width, column.aligns_left(), style(tone)));
        spans.push(Span::styled(" ", style(Tone::Plain)));
    }
    if let Some(refusal) = &row.refusal {
        // The error, in place of the missing figures.
        let (_, name_width) = layout[0];
        spans.truncate(4);
        let width = layout.iter().map(|(_, width)| width + 1).sum::<usize>() - name_width - 1;
        let text = escape::line(refusal.as_bytes());
        spans.extend(aligned(&text, width, true, style(Tone::Warn)));
    }
    Line::from(spans)
}

fn name_tone(row: &Row) -> Tone {
    match row.is_paused() {
        true => Tone::Warn,
        false => Tone::Plain,
    }
}
