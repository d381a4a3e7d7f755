// Package proxy is a proxy of TCP, or of a Unix socket, that breaks as networks do,
// when a test wants it to.
//
//	p, err := proxy.Listen("127.0.0.1:6443")
//	defer p.Close()
//	config.Host = "https://" + p.Addr()
//	p.Drop() // ... and
//	p.Heal()
//
// TLS passes through it: the certificate of the server has to be good for the
// proxy's address as well, which that of package cluster is.
package proxy
