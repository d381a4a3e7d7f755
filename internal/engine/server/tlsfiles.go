package server

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"

	"k8s.io/client-go/rest"
)

// tlsFiles are the files of a configuration that prove who a server and its client are. They may
// be replaced while the configuration is in use. A name is empty where the configuration has no
// such file, or has the content itself.
type tlsFiles struct{ ca, cert, key string }

// tlsFilesOf returns the files of config, as client-go uses them.
func tlsFilesOf(config *rest.Config) (f tlsFiles) {
	if config.Transport != nil { // it proves itself
		return f
	}
	if len(config.CAData) == 0 {
		f.ca = config.CAFile
	}
	if len(config.CertData) == 0 && len(config.KeyData) == 0 && config.CertFile != "" && config.KeyFile != "" {
		f.cert, f.key = config.CertFile, config.KeyFile
	}
	return f
}

// none reports whether there are no files.
func (f tlsFiles) none() bool { return f == tlsFiles{} }

// tlsContent is the content of tlsFiles.
type tlsContent struct{ ca, cert, key []byte }

// read reads the files.
func (f tlsFiles) read() (c tlsContent, err error) {
	for _, file := range []struct {
		option, path string
		into         *[]byte
	}{{"CAFile", f.ca, &c.ca}, {"CertFile", f.cert, &c.cert}, {"KeyFile", f.key, &c.key}} {
		if file.path == "" {
			continue
		}
		if *file.into, err = os.ReadFile(file.path); err != nil {
			return c, fmt.Errorf("%s of the rest.Config: %w", file.option, err)
		}
		if len(bytes.TrimSpace(*file.into)) == 0 {
			return c, fmt.Errorf("%s of the rest.Config: %s is empty", file.option, file.path)
		}
	}
	return c, nil
}

// fill returns config with the content in place of the files. Client-go takes content before files.
func (c tlsContent) fill(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	if c.ca != nil {
		config.CAData = c.ca
	}
	if c.cert != nil {
		config.CertData, config.KeyData = c.cert, c.key
	}
	return config
}

// tlsDigest tells whether two contents are the same, and takes little memory.
type tlsDigest struct{ server, client [sha256.Size]byte }

func (c tlsContent) digest() tlsDigest {
	return tlsDigest{server: sha256.Sum256(c.ca), client: sha256.Sum256(bytes.Join([][]byte{c.cert, c.key}, []byte{0}))}
}
