package main

import (
	"errors"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// startNATS runs a server with its data in dir, on a port of its own.
func startNATS(dir string) (jetstream.JetStream, func(), error) {
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: dir, NoSigs: true,
	})
	if err != nil {
		return nil, nil, err
	}
	s.Start()
	conn, err := connect(s)
	if err != nil {
		s.Shutdown()
		s.WaitForShutdown()
		return nil, nil, err
	}
	js, err := jetstream.New(conn, jetstream.WithPublishAsyncTimeout(10*time.Second))
	return js, func() {
		conn.Close()
		s.Shutdown()
		s.WaitForShutdown()
	}, err
}

func connect(s *server.Server) (*nats.Conn, error) {
	if !s.ReadyForConnections(time.Minute) {
		return nil, errors.New("the NATS server does not start")
	}
	return nats.Connect(s.ClientURL(), nats.MaxReconnects(-1))
}
