//! What a tone looks like. Without colour (NO_COLOR) weight and reversal say the same.

use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Span;
use ratatui::Frame;

use dq_watch::model::column::Tone;

#[derive(Clone, Copy, Debug)]
pub struct Theme {
    pub color: bool,
}

impl Theme {
    pub fn tone(self, tone: Tone) -> Style {
        let plain = Style::new();
        match (tone, self.color) {
            (Tone::Plain, _) => plain,
            (Tone::Quiet, true) => plain.fg(Color::DarkGray),
            (Tone::Quiet, false) => plain.add_modifier(Modifier::DIM),
            (Tone::Good, true) => plain.fg(Color::Green),
            (Tone::Note, true) => plain.fg(Color::Cyan),
            (Tone::Good | Tone::Note, false) => plain,
            (Tone::Warn, true) => plain.fg(Color::Yellow),
            (Tone::Warn, false) => plain.add_modifier(Modifier::BOLD),
            (Tone::Bad, true) => plain.fg(Color::Red).add_modifier(Modifier::BOLD),
            (Tone::Bad, false) => plain.add_modifier(Modifier::BOLD | Modifier::UNDERLINED),
        }
    }

    /// The line at the top, and the tab that is open.
    pub fn bar(self) -> Style {
        match self.color {
            true => Style::new()
                .fg(Color::White)
                .bg(Color::Blue)
                .add_modifier(Modifier::BOLD),
            false => Style::new().add_modifier(Modifier::REVERSED | Modifier::BOLD),
        }
    }

    /// Names of columns and of blocks.
    pub fn title(self) -> Style {
        match self.color {
            true => Style::new().fg(Color::Cyan).add_modifier(Modifier::BOLD),
            false => Style::new().add_modifier(Modifier::BOLD),
        }
    }

    /// The column that the table is sorted by.
    pub fn sorted(self) -> Style {
        self.title().add_modifier(Modifier::UNDERLINED)
    }

    pub fn selected(self, style: Style) -> Style {
        match self.color {
            true => style.bg(Color::Indexed(237)),
            false => style.add_modifier(Modifier::REVERSED),
        }
    }

    /// What may be outdated: its node is lost, or its queue gone.
    pub fn stale(self) -> Style {
        self.tone(Tone::Quiet)
    }

    /// Marks an area that is already drawn as outdated.
    pub fn grey_out(self, frame: &mut Frame, area: Rect) {
        let style = self
            .stale()
            .remove_modifier(Modifier::BOLD | Modifier::UNDERLINED);
        frame.buffer_mut().set_style(area, style);
    }

    pub fn label(self) -> Style {
        self.tone(Tone::Quiet)
    }

    pub fn key(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }
}

/// A label and its value.
pub fn labelled<'a>(theme: Theme, label: &str, value: String, tone: Tone) -> [Span<'a>; 2] {
    [
        Span::styled(format!("{label} "), theme.label()),
        Span::styled(value, theme.tone(tone)),
    ]
}

/// Quiet if the number is zero.
pub fn unless_zero(number: u64, tone: Tone) -> Tone {
    match number {
        0 => Tone::Quiet,
        _ => tone,
    }
}
