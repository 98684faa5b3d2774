package veil

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// secretWords are words by which the name of a credential is told, as whole words: as parts they would be everywhere.
var secretWords = []string{"auth", "key", "otp", "pass", "pwd", "sid", "sig"}

// secretParts are the same as parts of words. A rule takes more than it must, but a list would miss what it has not
// heard of; and a value that is hidden in vain still tells callers apart.
var secretParts = []string{
	"accesskey", "apikey", "assertion", "authent", "authoris", "authoriz", "cookie", "credential", "jwt", "oauth", "passphrase", "passw", "secret", "session", "signature", "token",
}

// harmlessWords have one of these parts, or end as a credential's name does.
var harmlessWords = []string{"donkey", "hockey", "jockey", "monkey", "tokenize", "tokenizer", "tokens", "turkey", "whiskey"}

// keysOfThings are what a key is of that opens nothing: Idempotency-Key.
var keysOfThings = []string{"cache", "collapse", "deduplication", "foreign", "group", "idempotency", "idempotent", "message", "order", "ordering", "partition", "primary", "public", "routing", "row", "shard", "sort", "surrogate", "websocket"}

// Secret reports whether a header, a parameter or a scope of the name holds a credential. It is the one list of weir: what
// is hidden in logs, what is not sent on to others, and what is not stored.
func Secret(name string) bool {
	if is, ok := known[name]; ok {
		return is
	}
	return secret(name)
}

// known is what Secret says of names that nearly every request has.
var known = func() map[string]bool {
	all := make(map[string]bool)
	for _, name := range []string{
		"Accept", "Accept-Encoding", "Accept-Language", "Authorization", "Cache-Control", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Cookie", "Date", "Host",
		"Idempotency-Key", "Origin", "Prefer", "Referer", "Traceparent", "Tracestate", "User-Agent", "Weir-Deliver-Before", "Weir-Not-Before", "Weir-Order-Key", "X-Api-Key",
		"X-Correlation-Id", "X-Forwarded-For", "X-Request-Id",
	} {
		all[name] = secret(name)
	}
	return all
}()

func secret(name string) bool {
	all := words(name)
	for i, word := range all {
		thing := i > 0 && slices.Contains(keysOfThings, all[i-1])
		if secretWord(word) && !(word == "key" && thing) {
			return true
		}
	}
	return false
}

func secretWord(word string) bool {
	word = strings.TrimRight(word, "0123456789")
	switch {
	case slices.Contains(harmlessWords, word):
		return false
	case slices.Contains(secretWords, word), strings.HasSuffix(word, "key"), strings.HasSuffix(word, "auth"),
		strings.HasPrefix(word, "auth") && !strings.HasPrefix(word, "author"):
		return true
	}
	return slices.ContainsFunc(secretParts, func(part string) bool { return strings.Contains(word, part) })
}

// words are those of a name, in small letters: between what is neither letter nor digit, and where capitals begin one.
func words(name string) (all []string) {
	runes := []rune(name)
	begin := 0
	cut := func(end int) {
		if end > begin {
			all = append(all, strings.ToLower(string(runes[begin:end])))
		}
	}
	for i, c := range runes {
		switch {
		case !unicode.IsLetter(c) && !unicode.IsDigit(c):
			cut(i)
			begin = i + 1
		case i > begin && unicode.IsUpper(c) && (!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])):
			cut(i)
			begin = i
		}
	}
	cut(len(runes))
	return all
}

// named finds what text names and gives a value: in queries, in JSON, in lists of headers. user finds users of URLs.
var (
	named = regexp.MustCompile(`([\pL\pN_.-]+)[\\"']*\s*[:=]\s*[\\"']*[^\s\\"'\[\]{},;&]`)
	user  = regexp.MustCompile(`://[^\s/?#"'<>@]+@`)
)

// Reveals is what a text names that holds a credential, and gives a value: a parameter of a URL, a header of an action;
// "" if there is nothing.
func Reveals(text string) string {
	if user.MatchString(text) {
		return "user"
	}
	for _, found := range named.FindAllStringSubmatch(text, -1) {
		if Secret(found[1]) {
			return found[1]
		}
	}
	return ""
}
