// Package redact makes the text of a server fit to be logged: short, and without credentials.
package redact

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// mask stands in the place of a credential, as in net/url.
const mask = "xxxxx"

// secret is the part of a name by which a value is known to be a credential.
const secret = `(?:token|secret|passw(?:or)?d|passphrase|credential|signature|api[_-]?key|assertion|jwt|cookie|key-data)`

// form is one way that a credential stands in text.
type form struct {
	// sign is part of each text that has the form. It is cheap to look for, and most texts do not have it.
	sign string
	// pattern has two groups, which stay: what precedes the credential, and what follows it.
	pattern *regexp.Regexp
}

var forms = []form{
	// https://user:password@host
	{"://", regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)[^/\s?#@"'<>\\]*(@)`)},
	// postgres://user:p/a?s#s@host: a password that should have been escaped
	{"://", regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)[^/\s?#@"'<>\\:]*:[^\s@"'<>\\]*(@)`)},
	// user:password@tcp(host:3306)/database
	{"@", regexp.MustCompile(`([\w.-]+:)[^\s@"'<>\\]+(@(?:tcp|unix|udp)?\()`)},
	// ?access_token=…
	{"=", regexp.MustCompile(`(?i)([?&;](?:[\w.%-]*` + secret + `[\w.%-]*|code|sig|key|auth)=)[^&;\s"'<>#\\]+`)},
	// password=… in a connection string, --token=… of a command, export AWS_SECRET_ACCESS_KEY=…
	{"=", regexp.MustCompile(`(?i)((?:^|[\s,('"\x60-])[\w.-]*` + secret + `[\w.-]*=['"]?)[^&;,\s"'<>\\)]+`)},
	// --token …
	{"--", regexp.MustCompile(`(?i)(--[\w-]*` + secret + `\s+)[^-\s"'<>\\][^\s"'<>\\]*`)},
	// Authorization: Bearer …
	{"", regexp.MustCompile(`(?i)((?:authorization|cookie)\\*["']?\s*[:=]\s*\\*["']?\[?)[^\r\n"'<>\\\]]+`)},
	// Bearer …
	{"", regexp.MustCompile(`(?i)(\b(?:bearer|basic)\s+)[\w+/.~=-]{16,}`)},
	// "password": "…"
	{":", regexp.MustCompile(`(?i)(\\*["'][\w.-]*` + secret + `[\w.-]*\\*["']\s*:\s*\\*["'])[^"'\\]+`)},
	// token: … in YAML, as a kubeconfig has it
	{":", regexp.MustCompile(`(?im)((?:^|\\n)[\t -]*[\w.-]*` + secret + `[\w.-]*:[ \t]+["']?)[^\s"'\\]+`)},
	// a private key, and where it is cut short
	{"PRIVATE KEY", regexp.MustCompile(`(-----BEGIN [A-Z ]*PRIVATE KEY-----)[^-]*(-----END [A-Z ]*PRIVATE KEY-----|$)`)},
	// A JSON web token, as service accounts have them.
	{"eyJ", regexp.MustCompile(`()\beyJ[\w-]{5,}\.[\w-]+(?:\.[\w-]*)?`)},
	// the same private key in base64, as in a kubeconfig
	{"LS0tLS1CRUdJTi", regexp.MustCompile(`()LS0tLS1CRUdJTi[\w+/=-]+`)},
	// tokens that are known by how they begin: of OpenShift, EKS, Google and GitHub
	{"", regexp.MustCompile(`()\b(?:sha256~|k8s-aws-v1\.|ya29\.|gh[pousr]_)[\w.~-]{16,}`)},
}

// Text returns text with a mask in the place of each credential: in a URL, a header, a JSON member, or a token by its form.
func Text(text string) string {
	for _, f := range forms {
		if strings.Contains(text, f.sign) {
			text = f.pattern.ReplaceAllString(text, "${1}"+mask+"${2}")
		}
	}
	return text
}

// Short is Text for a text that may be long: it returns the beginning, at most limit bytes with the note that the rest is
// missing. A text that was shortened has memory of its own.
func Short(text string, limit int) string {
	// A credential at the very end may be cut, and not be known as one: so the end is cut off once more.
	short := Text(text[:min(len(text), 2*limit)])
	if len(short) <= limit && len(text) <= 2*limit {
		return short
	}
	note := fmt.Sprintf("… (%d bytes in all)", len(text))
	end := min(len(short), max(0, limit-len(note)))
	for end > 0 && end < len(short) && !utf8.RuneStart(short[end]) {
		end--
	}
	return strings.Clone(short[:end]) + note
}
