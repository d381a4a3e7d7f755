package script

import "time"

// Config is what a line "informer" asks for. A [Maker] does with it what it can.
type Config struct {
	// List is how complete sets are read: list=auto, paged, full or watch-list.
	List string
	// Decode is the form of the objects: decode=unstructured, raw, metadata or typed.
	Decode string
	// Media is what the client asks for: media=json or protobuf.
	Media string
	// Page is the number of objects in a page: page=N. 0: the default.
	Page int
	// Budget is the bytes that may wait for the handler: budget=N. 0: the default.
	Budget int
	// Workers is the number of calls side by side: workers=N. 0: the default.
	Workers int
	// Batch is the most events in a batch: batch=N. 0: no batches, but a handler.
	Batch int
	// Attempts is after how many failures by itself an event is given up: attempts=N. 0: none is, but
	// for panics.
	Attempts int
	// IgnoreSynced is that the handler does not listen to unchanged objects: synced=ignored.
	IgnoreSynced bool
	// Checkpoint is that what was acknowledged is kept across restarts: checkpoint=on. Journal is
	// that a journal is kept beside it: checkpoint=journal.
	Checkpoint, Journal bool
	// Interval and Changes are how often that is saved: interval=D and changes=N. 0: the default.
	Interval time.Duration
	Changes  int
	// Stall is the silence after which a watch counts as broken: stall=D. 0: the default.
	Stall time.Duration
}

func parseConfig(a *args) Config {
	checkpoint := a.namedOne("checkpoint", "off", "on", "journal")
	return Config{
		List:         a.namedOne("list", "auto", "paged", "full", "watch-list"),
		Decode:       a.namedOne("decode", "unstructured", "raw", "metadata", "typed"),
		Media:        a.namedOne("media", "json", "protobuf"),
		Page:         a.namedCount("page", 0),
		Budget:       a.namedCount("budget", 0),
		Workers:      a.namedCount("workers", 0),
		Batch:        a.namedCount("batch", 0),
		Attempts:     a.namedCount("attempts", 0),
		IgnoreSynced: a.namedOne("synced", "told", "ignored") == "ignored",
		Checkpoint:   checkpoint != "off",
		Journal:      checkpoint == "journal",
		Interval:     a.namedDuration("interval", 0),
		Changes:      a.namedCount("changes", 0),
		Stall:        a.namedDuration("stall", 0),
	}
}

func defaultConfig() Config { return parseConfig(newArgs(nil)) }
