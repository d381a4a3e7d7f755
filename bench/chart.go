package main

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/rvinformer/informer/bench/race"
)

// chart is a figure of each contestant of a heat, as bars.
type chart struct {
	name, title, unit string
	format            string // of the figure beside a bar
	scenario          race.Scenario
	floors            bool
	figure            func(h *heat, e race.Entry) float64
}

func medianOf(figure func(race.Result) float64) func(*heat, race.Entry) float64 {
	return func(h *heat, e race.Entry) float64 { return h.of(e.Name, figure) }
}

var charts = []chart{
	{"bench-cpu", "CPU of a cold start", "CPU time, × that of a GET of the same pods in JSON whose body is thrown away", "%.2f", race.ColdStart, true,
		func(h *heat, e race.Entry) float64 { return h.ratio(e.Name, "floor-json", cpu) }},
	{"bench-rss", "Most memory in a cold start", "peak RSS in MiB", "%.0f", race.ColdStart, true, medianOf(peakMB)},
	{"bench-slow", "Most memory with a slow handler", "peak RSS in MiB", "%.0f", race.SlowHandler, true, medianOf(peakMB)},
	{"bench-relist", "CPU of a list without changes", "CPU time, × that of a GET of the same pods in JSON whose body is thrown away", "%.2f", race.Relist, true,
		func(h *heat, e race.Entry) float64 { return h.ratio(e.Name, "floor-json", cpu) }},
	{"bench-watch", "Changes read", "changes per second of CPU time", "%.0f", race.WatchBurst, false, medianOf(perCPUSecond)},
	{"bench-storage", "Memory of a storage", "bytes per key", "%.0f", race.Storage, true, medianOf(liveOf)},
	{"bench-restart", "CPU of starting again", "CPU time in seconds, where 1 pod in 100 has changed", "%.2f", race.Restart, false, medianOf(cpu)},
	{"bench-idle", "An idle informer", "heap and stacks in KiB", "%.0f", race.Idle, true, medianOf(idleKiB)},
}

// charts are those of a heat: of the first size or of pods' names, one for each
// scenario or two.
func (p *all) charts(h *heat) (some []chart) {
	shown := h.size == p.pods[0]
	if h.scenario == race.Storage {
		shown = h.names == race.PodNames
	}
	for _, c := range charts {
		if !p.real && c.scenario == h.scenario && shown {
			some = append(some, c)
		}
	}
	return some
}

// show has a document show the chart.
func (c chart) show(b *bytes.Buffer) { fmt.Fprintf(b, "\n![%s](%s.svg)\n", c.title, c.name) }

func init() {
	plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"}
	plotter.DefaultFont = plot.DefaultFont
}

var (
	floorColor = color.RGBA{0x9a, 0xa5, 0xb1, 0xff}
	oursColor  = color.RGBA{0x1f, 0x77, 0xb4, 0xff}
	peerColor  = color.RGBA{0xe0, 0x7b, 0x39, 0xff}
)

func colorOf(e race.Entry) color.Color {
	switch {
	case e.IsFloor():
		return floorColor
	case strings.HasPrefix(e.Name, "ours"):
		return oursColor
	default:
		return peerColor
	}
}

// shows tells whether a contestant has a bar: of the servers' floors two are enough.
func (c chart) shows(e race.Entry) bool {
	return !e.IsFloor() && !strings.HasPrefix(e.Name, "floor") || c.floors && slices.Contains([]string{"floor-json", "floor-protobuf", "map-uint64"}, e.Name)
}

func (c chart) draw(h *heat) ([]byte, error) {
	p := plot.New()
	p.BackgroundColor = color.White
	p.Title.Text = c.title
	if c.scenario != race.WatchBurst && c.scenario != race.Idle {
		p.Title.Text += fmt.Sprintf(", %s pods", thousands(h.size))
	}
	p.Title.TextStyle.Font.Size = vg.Points(15)
	p.Title.Padding = vg.Points(10)
	p.X.Label.Text = c.unit
	p.X.Label.Padding = vg.Points(6)
	p.X.Min = 0
	p.X.LineStyle.Width, p.X.Tick.LineStyle.Width = 0, 0
	p.X.Tick.Marker = plot.TickerFunc(func(low, high float64) []plot.Tick {
		ticks := plot.DefaultTicks{}.Ticks(low, high)
		for i := range ticks {
			if ticks[i].Label != "" {
				ticks[i].Label = c.label(ticks[i].Value, false)
			}
		}
		return ticks
	})
	grid := plotter.NewGrid()
	grid.Horizontal.Width = 0
	grid.Vertical.Color = color.Gray{0xd8}
	p.Add(grid)

	var names []string
	labels := plotter.XYLabels{}
	most := 0.0
	for _, v := range slices.Backward(h.variants) { // the first is at the top
		e := v.Entry
		if !c.shows(e) {
			continue
		}
		value := c.figure(h, e)
		bar, err := plotter.NewBarChart(plotter.Values{value}, vg.Points(16))
		if err != nil {
			return nil, err
		}
		bar.Horizontal, bar.XMin = true, float64(len(names))
		bar.Color, bar.LineStyle.Width = colorOf(e), 0
		p.Add(bar)
		labels.XYs = append(labels.XYs, plotter.XY{X: value, Y: float64(len(names))})
		labels.Labels = append(labels.Labels, c.label(value, true))
		names = append(names, e.Name)
		most = max(most, value)
	}
	texts, err := plotter.NewLabels(labels)
	if err != nil {
		return nil, err
	}
	texts.Offset = vg.Point{X: vg.Points(4), Y: -vg.Points(4)}
	p.Add(texts)
	p.X.Max = most * 1.1 // room for the labels
	p.NominalY(names...)
	p.Y.Tick.Label.Font.Size = vg.Points(11)

	width, height, margin := vg.Points(720), vg.Points(float64(110+26*len(names))), vg.Points(14)
	canvas, err := draw.NewFormattedCanvas(width, height, "svg")
	if err != nil {
		return nil, err
	}
	p.Draw(draw.Crop(paper(draw.New(canvas)), margin, -margin, margin, -margin))
	var svg bytes.Buffer
	if _, err := canvas.WriteTo(&svg); err != nil {
		return nil, err
	}
	// The same widths under other names, for readers without that font.
	const family = "font-family:Liberation Sans"
	return bytes.ReplaceAll(svg.Bytes(), []byte(family), []byte(family+",Arial,Helvetica,sans-serif")), nil
}

// paper fills a canvas with white: pages that show it may be dark.
func paper(c draw.Canvas) draw.Canvas {
	c.SetColor(color.White)
	c.Fill(c.Rectangle.Path())
	return c
}

// label is how a value is written, beside a bar or below the axis.
func (c chart) label(value float64, beside bool) string {
	switch {
	case value >= 1000:
		return thousands(int(math.Round(value)))
	case beside:
		return fmt.Sprintf(c.format, value)
	default:
		return strconv.FormatFloat(value, 'g', 4, 64) // a tick may be 0.30000000000000004
	}
}
