// Package redact makes the text of a server fit to be logged: short, and without credentials.
package redact

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// mask stands in the place of a credential, as in net/url.
const mask = "xxxxx"

// secret is the part of a name by which a value is known to be a credential. Each has one of
// secretSigns.
const secret = `(?:token|secret|passw(?:or)?d|passphrase|pwd|credential|signature|api[_-]?key|assertion|jwt|cookie|key-data)`

var secretSigns = []string{"token", "secret", "passw", "passphrase", "pwd", "credential", "signature", "key", "assertion", "jwt", "cookie"}

// form is one way that a credential stands in text.
//
// A pattern takes a hundred times as long as a look for its signs, and nearly all texts have none.
// Errors come by the thousand when a server goes away.
type form struct {
	// signs are parts of each text that has the form, in lower case. OneOf, if it is not empty, has
	// parts, and each such text has one of these.
	signs, oneOf []string
	// secret tells that such a text has one of secretSigns too.
	secret bool
	// pattern has two groups, which stay: what precedes the credential, and what follows it.
	pattern *regexp.Regexp
}

var forms = []form{
	// https://user:password@host
	{signs: []string{"://", "@"}, pattern: regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)[^/\s?#@"'<>\\]*(@)`)},
	// postgres://user:p/a?s#s@host: a password that should have been escaped
	{signs: []string{"://", "@"}, pattern: regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)[^/\s?#@"'<>\\:]*:[^\s@"'<>\\]*(@)`)},
	// user:password@tcp(host:3306)/database
	{signs: []string{"@", "("}, pattern: regexp.MustCompile(`([\w.-]+:)[^\s@"'<>\\]+(@(?:tcp|unix|udp)?\()`)},
	// ?access_token=…
	{signs: []string{"="}, secret: true, pattern: regexp.MustCompile(`(?i)([?&;][\w.%-]*` + secret + `[\w.%-]*=)[^&;\s"'<>#\\]+`)},
	// ?code=…
	{oneOf: []string{"code=", "sig=", "key=", "auth="}, pattern: regexp.MustCompile(`(?i)([?&;](?:code|sig|key|auth)=)[^&;\s"'<>#\\]+`)},
	// password=… in a connection string, --token=… of a command, export AWS_SECRET_ACCESS_KEY=…
	{signs: []string{"="}, secret: true, pattern: regexp.MustCompile(`(?i)((?:^|[\s,('"\x60-])[\w.-]*` + secret + `[\w.-]*=['"]?)[^&;,\s"'<>\\)]+`)},
	// --token …
	{signs: []string{"--"}, secret: true, pattern: regexp.MustCompile(`(?i)(--[\w-]*` + secret + `\s+)[^-\s"'<>\\][^\s"'<>\\]*`)},
	// --password '…'
	{signs: []string{"--"}, secret: true, pattern: regexp.MustCompile(`(?i)(--[\w-]*` + secret + `[\w-]*\s+\\*["'])[^"'\\]+`)},
	// password: … in a sentence
	{signs: []string{":"}, oneOf: []string{"passw", "passphrase", "pwd"}, pattern: regexp.MustCompile(`(?i)((?:^|[\s,;('"\x60])[\w.-]*(?:passw(?:or)?d|passphrase|pwd):\s+\\*["']?)[^\s"'\\]+`)},
	// X-Vault-Token: …
	{signs: []string{":", "-"}, secret: true, pattern: regexp.MustCompile(`(?i)((?:^|[\s,;('"\x60])\w[\w-]*-` + secret + `:\s*\\*["']?)[^\s"'\\]+`)},
	// token "…"
	{oneOf: []string{"token", "passw", "passphrase", "pwd"}, pattern: regexp.MustCompile(`(?i)(\b(?:token|passw(?:or)?d|passphrase|pwd)\s+\\*["'])[^\s"'\\]{6,}`)},
	// {"auth":"…"}, as in a configuration of Docker
	{signs: []string{"auth", ":"}, pattern: regexp.MustCompile(`(?i)(\\*["']_?auth\\*["']\s*:\s*\\*["'])[^"'\\]+`)},
	// Authorization: Bearer …
	{oneOf: []string{"authorization", "cookie"}, pattern: regexp.MustCompile(`(?i)((?:authorization|cookie)\\*["']?\s*[:=]\s*\\*["']?\[?)[^\r\n"'<>\\\]]+`)},
	// Bearer …
	{oneOf: []string{"bearer", "basic"}, pattern: regexp.MustCompile(`(?i)(\b(?:bearer|basic)\s+)[\w+/.~=-]{16,}`)},
	// Basic …, where it is short: some letters follow each other in base64, and not in a word.
	{oneOf: []string{"basic"}, pattern: regexp.MustCompile(`((?i:\bbasic)\s+)(?:[A-Za-z0-9+/]*(?:[a-z][A-Z0-9]|[A-Z0-9]{2}[a-z])[\w+/-]*=*|[A-Za-z0-9+/]+=+)`)},
	// "password": "…"
	{signs: []string{":"}, secret: true, pattern: regexp.MustCompile(`(?i)(\\*["'][\w.-]*` + secret + `[\w.-]*\\*["']\s*:\s*\\*["'])[^"'\\]+`)},
	// token: … in YAML, as a kubeconfig has it
	{signs: []string{":"}, secret: true, pattern: regexp.MustCompile(`(?im)((?:^|\\n)[\t -]*[\w.-]*` + secret + `[\w.-]*:[ \t]+["']?)[^\s"'\\]+`)},
	// a private key, and where it is cut short
	{signs: []string{"private key"}, pattern: regexp.MustCompile(`(-----BEGIN [A-Z ]*PRIVATE KEY-----)[^-]*(-----END [A-Z ]*PRIVATE KEY-----|$)`)},
	// A JSON web token, as service accounts have them.
	{signs: []string{"eyj"}, pattern: regexp.MustCompile(`()\beyJ[\w-]{5,}\.[\w-]+(?:\.[\w-]*)?`)},
	// the same private key in base64, as in a kubeconfig
	{signs: []string{"ls0tls1crudjti"}, pattern: regexp.MustCompile(`()LS0tLS1CRUdJTi[\w+/=-]+`)},
	// tokens that are known by how they begin: of OpenShift, EKS, Google, GitHub, GitLab and Vault
	{oneOf: []string{"sha256~", "k8s-aws-v1.", "ya29.", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "hvs."},
		pattern: regexp.MustCompile(`()\b(?:sha256~|k8s-aws-v1\.|ya29\.|gh[pousr]_|github_pat_|glpat-|hvs\.)[\w.~-]{16,}`)},
}

// Text returns text with a mask in the place of each credential: in a URL, a header, a JSON member,
// or a token by its form.
func Text(text string) string {
	// In a pattern that ignores case, K and S stand for two letters that are no ASCII. ToLower
	// changes the Kelvin sign to a k.
	lower := strings.ReplaceAll(strings.ToLower(text), "ſ", "s")
	secret := containsOneOf(lower, secretSigns)
	for i := range forms {
		if f := &forms[i]; (secret || !f.secret) && f.mayBeIn(lower) {
			text = f.pattern.ReplaceAllString(text, "${1}"+mask+"${2}")
		}
	}
	return text
}

func (f *form) mayBeIn(lower string) bool {
	for _, sign := range f.signs {
		if !strings.Contains(lower, sign) {
			return false
		}
	}
	return len(f.oneOf) == 0 || containsOneOf(lower, f.oneOf)
}

func containsOneOf(lower string, signs []string) bool {
	return slices.ContainsFunc(signs, func(sign string) bool { return strings.Contains(lower, sign) })
}

// Short is Text for a text that may be long: it returns the beginning, at most limit bytes with the
// note that the rest is missing. A text that was shortened has memory of its own.
func Short(text string, limit int) string {
	// A credential at the very end may be cut, and not be known as one: so the end is cut off once
	// more.
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
