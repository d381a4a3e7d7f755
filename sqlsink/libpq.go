package sqlsink

import (
	"crypto/tls"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"
)

// The parameters of libpq that pgx does not know, and would send to the server as settings, which the
// server refuses.
var (
	// ignored tune what pgx does in its own way, and change neither what is written nor who may read it.
	ignored = []string{"keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout",
		"load_balance_hosts", "sslcompression", "gssdelegation", "gsslib"}
	// unsupported have no way in pgx. To ignore them would connect to another server, or with less
	// safety, than was asked for.
	unsupported = []string{"hostaddr", "requirepeer", "requiressl", "sslcrl", "sslcrldir", "sslkeylogfile", "replication",
		"scram_client_key", "scram_server_key", "oauth_issuer", "oauth_client_id", "oauth_client_secret", "oauth_scope"}

	tlsVersions = map[string]uint16{"TLSv1": tls.VersionTLS10, "TLSv1.1": tls.VersionTLS11, "TLSv1.2": tls.VersionTLS12, "TLSv1.3": tls.VersionTLS13}
)

// adoptLibpq does what the parameters of libpq say that pgx has taken for settings of the server. The
// error names the one that cannot be had, without its value.
func adoptLibpq(config *pgconn.Config) error {
	given := config.RuntimeParams
	take := func(name string) (value string) {
		value = given[name]
		delete(given, name)
		return value
	}
	for _, name := range ignored {
		take(name)
	}
	for _, name := range unsupported {
		if _, is := given[name]; is {
			return fmt.Errorf("the parameter %s of the address is not supported", name)
		}
	}
	if mode := take("gssencmode"); !slices.Contains([]string{"", "disable", "prefer"}, mode) {
		return fmt.Errorf("the parameter gssencmode of the address must be disable or prefer: connections are encrypted by sslmode alone")
	}
	if name := take("fallback_application_name"); name != "" && given["application_name"] == "" {
		given["application_name"] = name
	}
	all := []*tls.Config{config.TLSConfig}
	for _, f := range config.Fallbacks {
		all = append(all, f.TLSConfig)
	}
	for name, set := range map[string]func(*tls.Config, uint16){
		"ssl_min_protocol_version": func(c *tls.Config, v uint16) { c.MinVersion = v },
		"ssl_max_protocol_version": func(c *tls.Config, v uint16) { c.MaxVersion = v },
	} {
		value := take(name)
		version := tlsVersions[value]
		if value != "" && version == 0 {
			return fmt.Errorf("the parameter %s of the address must be one of TLSv1, TLSv1.1, TLSv1.2, TLSv1.3", name)
		}
		for _, c := range all {
			if c != nil && version != 0 {
				set(c, version)
			}
		}
	}
	return nil
}
