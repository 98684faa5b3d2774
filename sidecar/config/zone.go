package config

import (
	"strings"

	"github.com/seed1158cd35/weir/internal/doc"
	"github.com/seed1158cd35/weir/limit/bucket"
)

var period = text("second, minute, hour, day, week or month", func(s string) (p bucket.Period, wrong, hint string) {
	if p.UnmarshalText([]byte(s)) != nil {
		return p, "want second, minute, hour, day, week or month", meantPeriod[strings.ToLower(s)]
	}
	return p, "", ""
})

var meantPeriod = map[string]string{
	"s": "write second", "1s": "write second", "seconds": "write second",
	"min": "write minute", "m": "write minute", "1m": "write minute", "60s": "write minute", "minutes": "write minute",
	"h": "write hour", "1h": "write hour", "60m": "write hour", "hourly": "write hour", "hours": "write hour",
	"d": "write day", "1d": "write day", "24h": "write day", "daily": "write day", "days": "write day", "midnight": "write day",
	"w": "write week", "7d": "write week", "168h": "write week", "weekly": "write week", "weeks": "write week", "monday": "write week",
	"30d": "write month", "monthly": "write month", "months": "write month",
}

var zone = text("the IANA name of a time zone (America/Los_Angeles, UTC)", parseZone)

// parseZone accepts UTC and the names of locations. It refuses abbreviations although the database has them: EST has
// no summer time in the database, but people mean New York.
func parseZone(s string) (name, wrong, hint string) {
	if strings.EqualFold(s, "UTC") {
		return "UTC", "", ""
	}
	if place := meantZone[strings.ToUpper(s)]; place != "" {
		return "", "is not a location, so its clock changes are unknown", "write " + place + " if that is meant"
	}
	if !strings.Contains(s, "/") {
		return "", "is not a time zone", orPlace(closestZone(s))
	}
	if _, err := bucket.Zone(s); err != nil {
		return "", "is not a time zone", orPlace(closestZone(s))
	}
	return s, "", ""
}

func orPlace(zone string) string {
	if zone == "" {
		return "write it as Area/City, such as America/Los_Angeles, or UTC"
	}
	return "did you mean " + zone + "?"
}

// closestZone returns the zone that s misspells, or whose city s names.
func closestZone(s string) string {
	s = strings.ReplaceAll(strings.ToLower(s), " ", "_")
	lower := make([]string, len(zones))
	for i, z := range zones {
		lower[i] = strings.ToLower(z)
		if _, city, _ := strings.Cut(lower[i], "/"); city == s[strings.LastIndex(s, "/")+1:] {
			return z
		}
	}
	best := doc.Likely(s, lower)
	for i := range lower {
		if lower[i] == best {
			return zones[i]
		}
	}
	return ""
}

var meantZone = map[string]string{
	"PT": "America/Los_Angeles", "PST": "America/Los_Angeles", "PDT": "America/Los_Angeles", "PACIFIC": "America/Los_Angeles", "PST8PDT": "America/Los_Angeles",
	"MT": "America/Denver", "MST": "America/Denver", "MDT": "America/Denver", "MOUNTAIN": "America/Denver",
	"CT": "America/Chicago", "CST": "America/Chicago", "CDT": "America/Chicago", "CENTRAL": "America/Chicago",
	"ET": "America/New_York", "EST": "America/New_York", "EDT": "America/New_York", "EASTERN": "America/New_York", "EST5EDT": "America/New_York",
	"HST": "Pacific/Honolulu", "BST": "Europe/London", "WET": "Europe/Lisbon", "CET": "Europe/Berlin", "CEST": "Europe/Berlin",
	"EET": "Europe/Helsinki", "EEST": "Europe/Helsinki", "MSK": "Europe/Moscow", "IST": "Asia/Kolkata", "JST": "Asia/Tokyo", "KST": "Asia/Seoul",
	"AEST": "Australia/Sydney", "AEDT": "Australia/Sydney", "GMT": "UTC", "Z": "UTC", "LOCAL": "UTC",
}

// zones are suggested as corrections. Every zone of the database is accepted.
var zones = strings.Fields(`
Africa/Cairo Africa/Casablanca Africa/Johannesburg Africa/Lagos Africa/Nairobi
America/Anchorage America/Argentina/Buenos_Aires America/Bogota America/Caracas America/Chicago America/Denver America/Halifax
America/Havana America/Lima America/Los_Angeles America/Mexico_City America/New_York America/Phoenix America/Santiago
America/Sao_Paulo America/St_Johns America/Toronto America/Vancouver
Asia/Bangkok Asia/Beirut Asia/Dhaka Asia/Dubai Asia/Ho_Chi_Minh Asia/Hong_Kong Asia/Jakarta Asia/Jerusalem Asia/Karachi
Asia/Kathmandu Asia/Kolkata Asia/Manila Asia/Riyadh Asia/Seoul Asia/Shanghai Asia/Singapore Asia/Taipei Asia/Tehran Asia/Tokyo
Australia/Adelaide Australia/Brisbane Australia/Melbourne Australia/Perth Australia/Sydney
Europe/Amsterdam Europe/Athens Europe/Berlin Europe/Brussels Europe/Dublin Europe/Helsinki Europe/Istanbul Europe/Kyiv
Europe/Lisbon Europe/London Europe/Madrid Europe/Moscow Europe/Oslo Europe/Paris Europe/Prague Europe/Rome Europe/Stockholm
Europe/Vienna Europe/Warsaw Europe/Zurich
Pacific/Auckland Pacific/Honolulu UTC`)
