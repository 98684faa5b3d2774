package pause

import "cmp"

// byEnd sorts by the end of the pause, the latest first.
func byEnd(a, b Held) int {
	return cmp.Or(
		cmp.Compare(b.Until(), a.Until()),
		cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Key, b.Key),
	)
}
