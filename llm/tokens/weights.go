package tokens

// The weights of the two public tokenizers were fitted to 4 KiB pieces of manuals in eleven languages, Go, Python,
// JavaScript and JSON, with least squares of the relative error (November 2026). The other weights are approximate and
// were not measured here:
//
//   - Claude up to 4.6: 16% more tokens than GPT-4o for English, 30% more for code (measurements reported by VentureBeat
//     in 2025), and about 1 per character in Japanese.
//   - Claude since 4.7: another tokenizer (pypi.org/project/ctok, 2026) that is said to need up to 35% more. 30% is
//     assumed for Latin script.
//   - Gemini: 4 characters per token (ai.google.dev, "Understand and count tokens", 2026), and one token per digit.
//   - Others: 10% more than GPT-4o, as for a smaller vocabulary.
//
// They are only the starting point for learning.
var (
	ofO200k = weights{
		words: 960, tails: 290, accents: 870, digits: 2000, marks: 420, moreMarks: 385,
		breaks: 930, indents: 235, greek: 340, semitic: 450, indic: 600,
		han: 720, kana: 620, hangul: 780, wide: 1500, bytes: 500,
	}
	ofCl100k = weights{
		words: 1000, tails: 360, accents: 1500, digits: 2000, marks: 400, moreMarks: 430,
		breaks: 600, indents: 400, greek: 560, semitic: 900, indic: 1500,
		han: 950, kana: 855, hangul: 1230, wide: 2000, bytes: 640,
	}
	ofOthers    = ofO200k.times(1100)
	ofClaude    = ofO200k.times(1160).with(marks, 560).with(moreMarks, 500).with(indents, 800).with(han, 1100).with(kana, 900).with(hangul, 1100).with(indic, 1200)
	ofNewClaude = ofClaude.times(1300).with(han, 1150).with(kana, 1000).with(hangul, 1200)
	ofGemini    = ofO200k.times(1050).with(digits, 3000)
)

// times returns w multiplied by milli thousandths.
func (w weights) times(milli int64) weights {
	for class := range w {
		w[class] = w[class] * milli / 1000
	}
	return w
}

func (w weights) with(class int, milli int64) weights {
	w[class] = milli
	return w
}
