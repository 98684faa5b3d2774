package board_test

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"testing"
)

// Linear RGB as seen with normal vision, protanopia and deuteranopia: Machado, Oliveira and Fernandes (2009),
// severity 1.
var visions = map[string][3][3]float64{
	"normal":       {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
	"protanopia":   {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}},
	"deuteranopia": {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}},
}

// leastDifference is the CIEDE2000 difference that two meanings must have. From about 10 on, colors differ at a
// glance.
const leastDifference = 15

// Each meaning has a color that differs from every other, in light and in dark, for people with normal vision,
// protanopia and deuteranopia. Texts have a contrast of at least 4.5 to their background, and colors of at least 3
// (WCAG 2.2, AA).
func TestColorsDifferForTheColorBlind(t *testing.T) {
	_, style := open(t, policy).get("/style.css")
	schemes := regexp.MustCompile(`(?s):root \{(.*?)\}`).FindAllStringSubmatch(style, -1)
	if len(schemes) != 2 {
		t.Fatalf("%d color schemes, want a light and a dark one", len(schemes))
	}
	for i, scheme := range []string{"light", "dark"} {
		colors := make(map[string][3]float64)
		for _, m := range regexp.MustCompile(`--([a-z]+): #([0-9a-f]{6});`).FindAllStringSubmatch(schemes[i][1], -1) {
			colors[m[1]] = linear(t, m[2])
		}
		meanings := []string{"allowed", "waited", "throttled", "failed", "refused", "half", "open"}
		texts := []string{"text", "dim", "link"}
		if known := len(meanings) + len(texts) + len([]string{"ground", "soft", "line"}); len(colors) != known {
			t.Fatalf("%s: %d colors, want %d: %v", scheme, len(colors), known, slices.Sorted(maps.Keys(colors)))
		}
		for _, ground := range []string{"ground", "soft"} {
			for _, name := range slices.Concat(texts, meanings) {
				least := 3.0
				if slices.Contains(texts, name) {
					least = 4.5
				}
				if c := contrast(colors[name], colors[ground]); c < least {
					t.Errorf("%s: the contrast of %s on %s is %.2f, want at least %.1f", scheme, name, ground, c, least)
				}
			}
		}
		for vision, matrix := range visions {
			for i, a := range meanings {
				for _, b := range meanings[:i] {
					if d := difference(lab(seen(colors[a], matrix)), lab(seen(colors[b], matrix))); d < leastDifference {
						t.Errorf("%s, %s: %s and %s differ by %.1f, want at least %d", scheme, vision, a, b, d, leastDifference)
					}
				}
			}
		}
	}
}

// difference agrees with pairs of Sharma, Wu and Dalal, "The CIEDE2000 Color-Difference Formula" (2005).
func TestColorDifferenceAgreesWithPublishedPairs(t *testing.T) {
	for _, c := range []struct {
		a, b [3]float64
		want float64
	}{
		{[3]float64{50, 2.6772, -79.7751}, [3]float64{50, 0, -82.7485}, 2.0425},
		{[3]float64{50, 2.5, 0}, [3]float64{73, 25, -18}, 27.1492},
		{[3]float64{50, 2.5, 0}, [3]float64{58, 24, 15}, 19.4535},
		{[3]float64{60.2574, -34.0099, 36.2677}, [3]float64{60.4626, -34.1751, 39.4387}, 1.2644},
	} {
		if got := difference(c.a, c.b); math.Abs(got-c.want) > 5e-4 {
			t.Errorf("%v and %v differ by %.4f, want %.4f", c.a, c.b, got, c.want)
		}
	}
}

func linear(t *testing.T, hex string) (c [3]float64) {
	t.Helper()
	for i := range c {
		n, err := strconv.ParseUint(hex[2*i:2*i+2], 16, 8)
		if err != nil {
			t.Fatal(fmt.Errorf("color %s: %w", hex, err))
		}
		if c[i] = float64(n) / 255; c[i] <= 0.04045 {
			c[i] /= 12.92
		} else {
			c[i] = math.Pow((c[i]+0.055)/1.055, 2.4)
		}
	}
	return c
}

func seen(c [3]float64, matrix [3][3]float64) (to [3]float64) {
	for i, row := range matrix {
		to[i] = min(1, max(0, row[0]*c[0]+row[1]*c[1]+row[2]*c[2]))
	}
	return to
}

func luminance(c [3]float64) float64 { return 0.2126*c[0] + 0.7152*c[1] + 0.0722*c[2] }

func contrast(a, b [3]float64) float64 {
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// lab converts a color to CIE L*a*b* with the white point D65.
func lab(c [3]float64) [3]float64 {
	f := func(t float64) float64 {
		if t > 216.0/24389 {
			return math.Cbrt(t)
		}
		return (24389.0/27*t + 16) / 116
	}
	x := f((0.4124*c[0] + 0.3576*c[1] + 0.1805*c[2]) / 0.95047)
	y := f(luminance(c))
	z := f((0.0193*c[0] + 0.1192*c[1] + 0.9505*c[2]) / 1.08883)
	return [3]float64{116*y - 16, 500 * (x - y), 200 * (y - z)}
}

// difference returns the CIEDE2000 difference of two colors.
func difference(p, q [3]float64) float64 {
	rad := math.Pi / 180
	mean := math.Pow((math.Hypot(p[1], p[2])+math.Hypot(q[1], q[2]))/2, 7)
	g := 0.5 * (1 - math.Sqrt(mean/(mean+math.Pow(25, 7))))
	a1, a2 := p[1]*(1+g), q[1]*(1+g)
	c1, c2 := math.Hypot(a1, p[2]), math.Hypot(a2, q[2])
	hue := func(b, a float64) float64 {
		if h := math.Atan2(b, a) / rad; h < 0 {
			return h + 360
		} else {
			return h
		}
	}
	h1, h2 := hue(p[2], a1), hue(q[2], a2)
	dh := h2 - h1
	h := (h1 + h2) / 2
	switch {
	case c1*c2 == 0:
		dh, h = 0, h1+h2
	case dh > 180:
		dh, h = dh-360, math.Mod(h+180, 360)
	case dh < -180:
		dh, h = dh+360, math.Mod(h+180, 360)
	}
	l, c := (p[0]+q[0])/2, (c1+c2)/2
	dH := 2 * math.Sqrt(c1*c2) * math.Sin(dh/2*rad)
	t := 1 - 0.17*math.Cos((h-30)*rad) + 0.24*math.Cos(2*h*rad) + 0.32*math.Cos((3*h+6)*rad) - 0.2*math.Cos((4*h-63)*rad)
	sl := 1 + 0.015*(l-50)*(l-50)/math.Sqrt(20+(l-50)*(l-50))
	sc, sh := 1+0.045*c, 1+0.015*c*t
	c7 := math.Pow(c, 7)
	rt := -2 * math.Sqrt(c7/(c7+math.Pow(25, 7))) * math.Sin(60*math.Exp(-math.Pow((h-275)/25, 2))*rad)
	x, y, z := (q[0]-p[0])/sl, (c2-c1)/sc, dH/sh
	return math.Sqrt(x*x + y*y + z*z + rt*y*z)
}
