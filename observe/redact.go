package observe

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Mask stands where a secret was.
const Mask = "***"

// A secret is one way in which errors of HTTP clients and SDKs are known to show
// secrets. The first group of the pattern stays and the rest is masked. No text
// can match that holds none of the words in it, whatever their case; to look for
// words is cheap.
type secret struct {
	words   []string
	pattern *regexp.Regexp
}

var secrets = [...]secret{
	// The user of a URL as net/http shows it, unescaped, in place of the password.
	{[]string{":***@"}, regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)\S*:\*\*\*@`)},
	// User and password of a URL, up to the last @ of its authority.
	{[]string{"@"}, regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)[^\s/?#"'<>]*@`)},
	// The query of a URL: values by name, or all of it if it has no names.
	{[]string{"?", "&", ";"}, regexp.MustCompile(`([?&;][^\s=&;"'<>#]*=)[^\s&;"'<>#]+`)},
	{[]string{"?"}, regexp.MustCompile(`(://[^\s?#"'<>]*\?)[^\s=&;"'<>#]+(?:[\s"'<>#]|$)`)},
	// The fragment of a URL, where OAuth puts tokens.
	{[]string{"#"}, regexp.MustCompile(`(://[^\s#"'<>]*#)[^\s"'<>]+`)},
	// Header fields, in a dump of a request, with or without quotes.
	{[]string{"authorization", "cookie", "api-key", "x-am", "x-auth"}, regexp.MustCompile(
		`(?i)((?:authorization|(?:set-)?cookie|(?:x-)?(?:goog-)?api-key|x-amz-security-token|x-auth-token)["']?\s*[:=]\s*\[?["']?)[^\r\n"'\]]+`)},
	// Credentials that name their scheme, wherever they are.
	{[]string{"bearer"}, regexp.MustCompile(`(?i)(\bbearer\s+)[^\s"',]{8,}`)},
	{[]string{"basic"}, regexp.MustCompile(`(?i)(\bbasic\s+)[A-Za-z0-9+/=_-]{16,}`)},
	// Values in JSON and in notes like key=value.
	{[]string{"key", "token", "secret", "password", "signature"}, regexp.MustCompile(
		`(?i)(\b(?:api_?key|access_?token|refresh_?token|id_?token|session_?token|client_?secret|secret_?access_?key|password|signature)["']?\s*[:=]\s*["']?)[^\s"',&}]+`)},
	// Keys that are known by how they begin: those of OpenAI and Anthropic, Google, AWS, GitHub and Slack.
	{[]string{"sk-", "aiza", "akia", "asia", "gh", "xox"}, regexp.MustCompile(
		`\b(sk-|AIza|AKIA|ASIA|gh[opsu]_|github_pat_|xox[abprs]-)[A-Za-z0-9_*-]{8,}`)},
}

func (s secret) mask(text, lower string) string {
	for _, w := range s.words {
		if strings.Contains(lower, w) {
			return s.pattern.ReplaceAllString(text, "${1}"+Mask)
		}
	}
	return text
}

// longest is how much of a text is looked at. Errors can hold whole documents.
const longest = 4096

// Redact is s without the secrets that errors are known to hold (passwords and
// query values of URLs, credentials in header fields, keys of well-known kinds)
// and at most n bytes long. It is a second line of defence: what it does not know
// it cannot mask.
func Redact(s string, n int) string {
	s = head(s)
	lower := strings.ToLower(s)
	for _, secret := range secrets {
		s = secret.mask(s, lower)
	}
	return Cut(s, n)
}

// head is the beginning of s. It ends at a space: half a URL would not show that
// it is one.
func head(s string) string {
	if len(s) <= longest {
		return s
	}
	return s[:max(0, strings.LastIndexAny(s[:longest], " \t\r\n"))] + " ..."
}

// Cut is s, or if that is longer than n bytes its beginning with dots behind it.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	n = max(0, n-len("..."))
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "..."
}

// mostError is how much of an error is shown.
const mostError = 1024

// Error is what err says, redacted; "" if it is nil. It survives errors that
// panic when they are asked.
func Error(err error) (text string) {
	defer func() {
		if recover() != nil {
			text = fmt.Sprintf("%T (it panics when asked)", err)
		}
	}()
	if err == nil {
		return ""
	}
	return Redact(err.Error(), mostError)
}
