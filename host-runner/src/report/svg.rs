//! What pictures are made of: axes, frames, legends. A picture is inline SVG; its colours are classes of the style
//! sheet.

use maud::{Markup, html};
use std::fmt::Write;

/// Width of every picture, in units that are pixels on a wide screen.
pub(super) const WIDTH: f64 = 680.0;

/// A coordinate: a tenth of a pixel is enough.
pub(super) fn px(at: f64) -> String {
    let text = format!("{at:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// A picture with its name and what it shows, for those who do not see it. It scrolls in its box where it is too wide.
pub(super) fn picture(id: &str, name: &str, description: &str, height: f64, body: &Markup) -> Markup {
    let (title, about) = (format!("{id}-title"), format!("{id}-desc"));
    html! {
        div.scroll tabindex="0" role="group" aria-label=(name) {
            svg id=(id) viewBox=(format!("0 0 {} {}", px(WIDTH), px(height))) role="img"
                aria-labelledby=(format!("{title} {about}")) xmlns="http://www.w3.org/2000/svg" {
                title id=(title) { (name) }
                desc id=(about) { (description) }
                (body)
            }
        }
    }
}

/// How values become places.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Scale {
    Linear,
    Log,
}

/// Values along a line of pixels.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Axis {
    scale: Scale,
    least: f64,
    most: f64,
    from: f64,
    to: f64,
}

impl Axis {
    /// From `least` to `most`, which lie at the pixels `from` and `to`. An empty range is widened.
    pub(super) fn linear((least, most): (f64, f64), (from, to): (f64, f64)) -> Axis {
        let most = if most > least { most } else { least + 1.0 };
        Axis { scale: Scale::Linear, least, most, from, to }
    }

    /// The same for positive values, in which equal ratios are equally far apart.
    pub(super) fn log((least, most): (f64, f64), (from, to): (f64, f64)) -> Axis {
        let least = least.max(f64::MIN_POSITIVE);
        let (least, most) = if most / least > 1.02 { (least, most) } else { (least / 1.1, least * 1.1) };
        Axis { scale: Scale::Log, least, most, from, to }
    }

    /// Where a value lies.
    pub(super) fn at(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => (value - self.least) / (self.most - self.least),
            Scale::Log => (value.max(self.least) / self.least).ln() / (self.most / self.least).ln(),
        };
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// Round values along the axis, about six of them.
    pub(super) fn ticks(&self) -> Vec<f64> {
        let wide = self.scale == Scale::Log && self.most / self.least >= 8.0;
        let ticks = if wide { self.powers() } else { self.steps() };
        ticks.into_iter().filter(|tick| (self.least * 0.9999..=self.most * 1.0001).contains(tick)).collect()
    }

    fn steps(&self) -> Vec<f64> {
        let rough = (self.most - self.least) / 6.0;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|unit| unit * power).into_iter().find(|step| *step >= rough);
        let step = step.unwrap_or(rough);
        let first = (self.least / step).ceil() as i64;
        (0..12).map(|k| (first + k) as f64 * step).take_while(|tick| *tick <= self.most * 1.0001).collect()
    }

    fn powers(&self) -> Vec<f64> {
        let (first, last) = (self.least.log10().floor() as i32, self.most.log10().ceil() as i32);
        let units: &[f64] = if self.most / self.least <= 300.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let stride = ((last - first) / 8 + 1) as usize;
        let powers = (first..=last).step_by(stride);
        powers.flat_map(|power| units.iter().map(move |unit| unit * 10f64.powi(power))).collect()
    }
}

/// The inside of a diagram, in pixels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

impl Frame {
    /// Along the bottom.
    pub(super) fn across(&self) -> (f64, f64) {
        (self.left, self.right)
    }

    /// Along the left side, upwards.
    pub(super) fn up(&self) -> (f64, f64) {
        (self.bottom, self.top)
    }

    /// The axis along the bottom: a line, ticks with labels, a name.
    pub(super) fn bottom_axis(&self, axis: &Axis, name: &str, label: impl Fn(f64) -> String) -> Markup {
        let y = px(self.bottom);
        html! {
            @for tick in axis.ticks() {
                @let x = px(axis.at(tick));
                line.grid x1=(x) x2=(x) y1=(px(self.top)) y2=(y) {}
                text.tick x=(x) y=(px(self.bottom + 16.0)) text-anchor="middle" { (label(tick)) }
            }
            line.axis x1=(px(self.left)) x2=(px(self.right)) y1=(y) y2=(y) {}
            text.name x=(px((self.left + self.right) / 2.0)) y=(px(self.bottom + 36.0)) text-anchor="middle" { (name) }
        }
    }

    /// The axis along the left side.
    pub(super) fn left_axis(&self, axis: &Axis, name: &str, label: impl Fn(f64) -> String) -> Markup {
        let middle = (self.top + self.bottom) / 2.0;
        html! {
            @for tick in axis.ticks() {
                @let y = axis.at(tick);
                line.grid x1=(px(self.left)) x2=(px(self.right)) y1=(px(y)) y2=(px(y)) {}
                text.tick x=(px(self.left - 8.0)) y=(px(y + 4.0)) text-anchor="end" { (label(tick)) }
            }
            text.name transform=(format!("translate(14 {}) rotate(-90)", px(middle))) text-anchor="middle" { (name) }
        }
    }
}

/// Path data of a rectangle.
pub(super) fn block(path: &mut String, x: f64, y: f64, width: f64, height: f64) {
    // A string takes everything.
    let _ = write!(path, "M{} {}h{}v{}H{}z", px(x), px(y), px(width), px(height), px(x));
}

/// Path data of a line through points.
pub(super) fn line(points: impl IntoIterator<Item = (f64, f64)>) -> String {
    let mut path = String::new();
    for (x, y) in points {
        let _ = write!(path, "{}{} {}", if path.is_empty() { 'M' } else { 'L' }, px(x), px(y));
    }
    path
}

/// What the colours of a picture mean: classes of filled swatches, and words.
pub(super) fn legend<'l>(entries: impl IntoIterator<Item = (String, &'l str)>) -> Markup {
    html! {
        ul.legend {
            @for (class, word) in entries {
                li {
                    svg.swatch viewBox="0 0 12 12" aria-hidden="true" { rect class=(class) width="12" height="12" {} }
                    (word)
                }
            }
        }
    }
}

/// The same for lines.
pub(super) fn line_legend(entries: &[String]) -> Markup {
    html! {
        ul.legend {
            @for (number, word) in entries.iter().enumerate() {
                li {
                    svg.stroke viewBox="0 0 28 12" aria-hidden="true" {
                        path class=(format!("line l{number}")) d="M0 6h28" {}
                    }
                    (word)
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_within_the_axis() {
        let across = (0.0, 100.0);
        assert_eq!(Axis::linear((0.0, 6.0), across).ticks(), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!(Axis::linear((3.0, 34.0), across).ticks(), [10.0, 20.0, 30.0]);
        assert_eq!(Axis::log((9.0, 110.0), across).ticks(), [10.0, 20.0, 50.0, 100.0]);
        assert_eq!(Axis::log((1.0, 1e6), across).ticks().len(), 7);
        let narrow = Axis::log((1.0, 2.0), across).ticks();
        let shown: Vec<String> = narrow.iter().map(|tick| format!("{tick:.6}")).collect();
        assert_eq!(shown, [1.0, 1.2, 1.4, 1.6, 1.8, 2.0].map(|tick| format!("{tick:.6}")));
        for empty in [Axis::linear((0.0, 0.0), across), Axis::log((5.0, 5.0), across), Axis::log((0.0, 0.0), across)] {
            assert!(empty.at(5.0).is_finite() && empty.ticks().iter().all(|tick| tick.is_finite()), "{empty:?}");
        }
    }

    #[test]
    fn values_lie_where_they_should() {
        let log = Axis::log((1.0, 100.0), (0.0, 10.0));
        assert_eq!([1.0, 10.0, 100.0, 1e9].map(|value| log.at(value)), [0.0, 5.0, 10.0, 10.0]);
        let upwards = Axis::linear((0.0, 4.0), (50.0, 10.0));
        assert_eq!([0.0, 1.0, 4.0].map(|value| upwards.at(value)), [50.0, 40.0, 10.0]);
    }

    #[test]
    fn coordinates_are_short() {
        assert_eq!([px(3.0), px(2.55), px(-0.25)], ["3", "2.5", "-0.2"]);
        let mut path = String::new();
        block(&mut path, 1.0, 2.0, 3.0, 4.0);
        assert_eq!((path.as_str(), line([(0.0, 1.0), (2.5, 3.0)]).as_str()), ("M1 2h3v4H1z", "M0 1L2.5 3"));
    }
}
