package controller

import (
	"log/slog"

	"k8s.io/klog/v2"
)

// Logger is what a Controller logs with. After the message come keys and values in turn.
// An hclog.Logger is one, and so is an *slog.Logger.
type Logger interface {
	Debug(msg string, args ...interface{})
	Info(msg string, args ...interface{})
	Warn(msg string, args ...interface{})
	Error(msg string, args ...interface{})
}

var (
	_ Logger = (*slog.Logger)(nil)
	_ Logger = klogLogger{}
)

// klogLogger is klog, the default Logger. It has no warnings: they are informations.
type klogLogger struct{ klog.Logger }

func (l klogLogger) Debug(msg string, args ...interface{}) { l.V(4).Info(msg, args...) }
func (l klogLogger) Info(msg string, args ...interface{})  { l.Logger.Info(msg, args...) }
func (l klogLogger) Warn(msg string, args ...interface{})  { l.Logger.Info(msg, args...) }
func (l klogLogger) Error(msg string, args ...interface{}) { l.Logger.Error(nil, msg, args...) }
