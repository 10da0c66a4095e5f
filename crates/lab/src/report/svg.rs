//! Drawings as SVG: lines, series over time, heat maps and bars, with the papers' numbers as separate marks.
//!
//! A drawing scales to its width, follows the reader's light or dark scheme, and names itself to screen readers. The
//! same results give the same bytes.

mod bars;
mod canvas;
mod chart;
mod content;
mod data;
mod heat;
mod histogram;
mod legend;
mod lines;
mod marks;
mod panel;
mod scale;
mod surface;
#[cfg(test)]
mod tests;
mod time;
mod words;

use crate::aggregate::Measurements;
use crate::figures::FigureResult;
use crate::report::style::{self, attributes};
use crate::scenario::{PlotKind, PlotSpec};

pub(crate) use canvas::{Anchor, Canvas, Escaped, escape, number, width};
pub use content::{Content, ContentAxis, ContentLine, ContentPanel, contents};
use data::PlotSource;
pub(crate) use data::meant_at;
pub use histogram::{Histogram, histogram};
pub(crate) use marks::in_words;
pub use surface::{Caption, Quantity, RangeCurve, RangeCurves, Surface, range_curves, surface};
pub(crate) use words::{capital, words};

/// The type of a drawing alone, for programs without style sheets.
const FONT: &str = "font-family=\"system-ui, 'Liberation Sans', Arial, sans-serif\" font-size=\"12\"";

/// The width of every drawing, in its own units: about a text column in CSS pixels.
const WIDTH: f64 = 720.0;
/// The width of a drawing for a phone. Its panels stand one below the other, each as wide as one of two panels side by
/// side.
const NARROW: f64 = WIDTH / 2.0;

/// One drawing of a figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drawing {
    /// The name in the scenario, which names the file.
    pub name: String,
    /// The title.
    pub title: String,
    /// The text of the file.
    pub svg: String,
}

/// All drawings of a figure, as files. `measurements` holds the figure and those to which its expressions refer.
#[must_use]
pub fn drawings(figure: &FigureResult, measurements: &Measurements<'_>) -> Vec<Drawing> {
    drawn(figure, measurements).map(|plot| draw(figure, plot, measurements, true)).collect()
}

/// The plots of a figure that have a point of its grid. The quick form may lack the points of a plot.
pub(crate) fn drawn<'a>(
    figure: &'a FigureResult,
    measurements: &'a Measurements<'a>,
) -> impl Iterator<Item = &'a PlotSpec> {
    let meant = move |plot: &&PlotSpec| !PlotSource { figure, plot, measurements, width: WIDTH }.points().is_empty();
    figure.scenario.plots.iter().filter(meant)
}

/// The same drawing for a narrow page.
pub(crate) fn draw_narrow(figure: &FigureResult, plot: &PlotSpec, measurements: &Measurements<'_>) -> Drawing {
    render(&PlotSource { figure, plot, measurements, width: NARROW }, false)
}

/// One drawing. A drawing that does not stand alone takes its style from the page.
pub(crate) fn draw(figure: &FigureResult, plot: &PlotSpec, measurements: &Measurements<'_>, alone: bool) -> Drawing {
    render(&PlotSource { figure, plot, measurements, width: WIDTH }, alone)
}

fn render(source: &PlotSource<'_>, alone: bool) -> Drawing {
    let (figure, plot) = (source.figure, source.plot);
    let mut canvas = Canvas::alone(alone);
    let height = match plot.kind {
        PlotKind::Lines => chart::draw(&mut canvas, source, lines::panels(source)),
        PlotKind::Time => chart::draw(&mut canvas, source, time::panels(source)),
        PlotKind::Heat => heat::draw(&mut canvas, source),
        PlotKind::Bars => bars::draw(&mut canvas, source),
    };
    let title = plot.title.clone().unwrap_or_else(|| figure.info.title.clone());
    let svg = wrap(&canvas.finish(), height, source, &title, alone);
    Drawing { name: plot.name.clone(), title, svg }
}

/// The prefix of ids in a drawing, so that they are unique on a page.
fn id(source: &PlotSource<'_>) -> String {
    let plain = |character: char| if character.is_ascii_alphanumeric() { character } else { '-' };
    let narrow = if source.is_narrow() { "-narrow" } else { "" };
    format!("{}-{}{narrow}", source.figure.info.id, source.plot.name).chars().map(plain).collect()
}

fn wrap(content: &str, height: f64, source: &PlotSource<'_>, title: &str, alone: bool) -> String {
    let caption = Caption { id: &id(source), title, shows: &source.figure.info.shows };
    framed(content, (source.width, height), caption, alone)
}

/// An SVG of this size with its name. One that is `alone` has its style and its ground.
fn framed(content: &str, (width, height): (f64, f64), caption: Caption<'_>, alone: bool) -> String {
    let [w, h] = [width, height].map(number);
    let (id, title, shows) = (caption.id, escape(caption.title), escape(caption.shows));
    let style = if alone { format!("<style>{}</style>\n", style::alone()) } else { String::new() };
    let size = if alone { format!(" width=\"{w}\" height=\"{h}\" {FONT}") } else { String::new() };
    let ground = match alone {
        true => format!("<rect class=\"ground\"{} width=\"{w}\" height=\"{h}\"/>\n", attributes("rect", "ground")),
        false => String::new(),
    };
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\" viewBox=\"0 0 {w} {h}\"{size} role=\"img\" \
         aria-labelledby=\"{id}-title {id}-desc\">\n<title id=\"{id}-title\">{title}</title>\n\
         <desc id=\"{id}-desc\">{shows}</desc>\n{style}{ground}{content}</svg>\n"
    )
}
