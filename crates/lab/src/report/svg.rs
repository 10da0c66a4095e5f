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
use crate::scenario::PlotKind;

pub(crate) use canvas::{Anchor, Canvas, Escaped, escape, number, width};
pub use content::{Content, ContentAxis, ContentLine, ContentPanel, contents};
pub(crate) use data::PlotSource;
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
    drawn(figure, measurements).map(|source| draw(&source, true)).collect()
}

/// The plots of a figure that have a point of its grid. The quick form may lack the points of a plot.
pub(crate) fn drawn<'a>(
    figure: &'a FigureResult,
    measurements: &'a Measurements<'a>,
) -> impl Iterator<Item = PlotSource<'a>> {
    let sources = figure.scenario.plots.iter().map(|plot| PlotSource { figure, plot, measurements, width: WIDTH });
    sources.filter(|source| !source.points().is_empty())
}

/// One drawing. A drawing that does not stand alone takes its style from the page.
pub(crate) fn draw(source: &PlotSource<'_>, alone: bool) -> Drawing {
    let mut canvas = Canvas::alone(alone);
    let height = match source.plot.kind {
        PlotKind::Lines => chart::draw(&mut canvas, source, lines::panels(source)),
        PlotKind::Time => chart::draw(&mut canvas, source, time::panels(source)),
        PlotKind::Heat => heat::draw(&mut canvas, source),
        PlotKind::Bars => bars::draw(&mut canvas, source),
    };
    let title = source.title();
    let caption = Caption { id: &source.id(), title, shows: &source.figure.info.shows };
    let svg = framed(&canvas.finish(), (source.width, height), caption, alone);
    Drawing { name: source.plot.name.clone(), title: title.to_owned(), svg }
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
