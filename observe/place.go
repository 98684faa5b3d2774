package observe

import "strings"

// Region returns the AWS region in the keys of a subject, such as "account=1,region=eu-west-1". It returns "" if there is none or
// if the value cannot be a region. Callers can choose keys, and an arbitrary value must not become a dimension or a log field.
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

// Account returns the AWS account in the keys: twelve digits, or "".
func Account(keys string) string {
	s := scope(keys, "account=")
	if len(s) != 12 || strings.Trim(s, "0123456789") != "" {
		return ""
	}
	return s
}

// scope returns the value of a name in a subject's keys, "" if it is not there. The name includes its "=".
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
