package observe

import "strings"

// Region is the region of AWS that the keys of a subject name, "account=1,region=eu-west-1"; "" if there is none, or what is
// there could not be one. A key can be the caller's, and must not become a dimension or a field if it is anything else.
func Region(keys string) string {
	s := scope(keys, "region=")
	if len(s) < 8 || len(s) > 20 || s[len(s)-1] < '0' || s[len(s)-1] > '9' {
		return ""
	}
	dashes := 0
	for i := range len(s) - 1 {
		switch c := s[i]; {
		case c == '-':
			dashes++
		case c < 'a' || c > 'z':
			return ""
		}
	}
	if dashes < 2 || dashes > 3 || s[len(s)-2] != '-' {
		return ""
	}
	return s
}

// Account is the account of AWS that the keys name: twelve digits, or "".
func Account(keys string) string {
	s := scope(keys, "account=")
	if len(s) != 12 || strings.Trim(s, "0123456789") != "" {
		return ""
	}
	return s
}

// scope is the value of a key in a subject's keys; "" if there is none.
func scope(keys, name string) string {
	for rest := keys; ; {
		part, after, more := strings.Cut(rest, ",")
		if strings.HasPrefix(part, name) {
			return part[len(name):]
		}
		if !more {
			return ""
		}
		rest = after
	}
}
