package main

import (
	"time"

	"github.com/rvinformer/informer/bench/race"
)

// The figures.

func wall(r race.Result) float64 { return seconds(r.Wall) }
func cpu(r race.Result) float64  { return seconds(r.CPU) }

func serverCPU(r race.Result) float64 { return seconds(r.ServerCPU) }

func allocs(r race.Result) float64    { return float64(r.Allocs) / float64(r.Objects) }
func allocKiB(r race.Result) float64  { return float64(r.AllocBytes) / float64(r.Objects) / 1024 }
func peakMB(r race.Result) float64    { return float64(r.PeakRSS) / (1 << 20) }
func grownMB(r race.Result) float64   { return float64(r.Grown) / (1 << 20) }
func delivered(r race.Result) float64 { return float64(r.Delivered) }

func perSecond(r race.Result) float64    { return float64(r.Objects) / seconds(r.Wall) }
func perCPUSecond(r race.Result) float64 { return float64(r.Objects) / seconds(r.CPU) }

func liveOf(r race.Result) float64      { return float64(r.Store.Live) / float64(r.Objects) }
func liveLaterOf(r race.Result) float64 { return float64(r.Store.LiveLater) / float64(r.Objects) }
func peakOf(r race.Result) float64      { return float64(r.Store.Peak) / float64(r.Objects) }
func gcMillis(r race.Result) float64    { return 1e3 * seconds(r.Store.GC) }
func gcCPUMillis(r race.Result) float64 { return 1e3 * seconds(r.Store.GCCPU) }

func synced(r race.Result) float64     { return seconds(r.Synced) }
func requests(r race.Result) float64   { return float64(r.Requests) }
func receivedMB(r race.Result) float64 { return float64(r.Received) / (1 << 20) }

func goroutines(r race.Result) float64 { return r.Goroutines }
func stackKiB(r race.Result) float64   { return r.StackBytes / (1 << 10) }
func liveKiB(r race.Result) float64    { return r.LiveBytes / (1 << 10) }
func idleKiB(r race.Result) float64    { return r.InUseBytes / (1 << 10) }
func rssKiB(r race.Result) float64     { return r.RSS / (1 << 10) }

func objects(r race.Result) float64 { return float64(r.Objects) }

func settledMB(r race.Result) float64        { return float64(r.Peaks.Settled) / (1 << 20) }
func startPeakMB(r race.Result) float64      { return float64(r.Peaks.Start) / (1 << 20) }
func relistPeakMB(r race.Result) float64     { return float64(r.Peaks.Relist) / (1 << 20) }
func settledAgainMB(r race.Result) float64   { return float64(r.Peaks.SettledAgain) / (1 << 20) }
func startReceivedMB(r race.Result) float64  { return float64(r.Peaks.StartReceived) / (1 << 20) }
func relistReceivedMB(r race.Result) float64 { return float64(r.Peaks.RelistReceived) / (1 << 20) }

// quotient is that of two figures of one process.
func quotient(a, b func(race.Result) float64) func(race.Result) float64 {
	return func(r race.Result) float64 { return a(r) / b(r) }
}

func seconds(d time.Duration) float64 { return d.Seconds() }
