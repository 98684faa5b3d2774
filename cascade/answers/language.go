package answers

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/danish"
	"github.com/blevesearch/snowballstem/dutch"
	"github.com/blevesearch/snowballstem/finnish"
	"github.com/blevesearch/snowballstem/french"
	"github.com/blevesearch/snowballstem/german"
	"github.com/blevesearch/snowballstem/italian"
	"github.com/blevesearch/snowballstem/norwegian"
	"github.com/blevesearch/snowballstem/porter"
	"github.com/blevesearch/snowballstem/portuguese"
	"github.com/blevesearch/snowballstem/russian"
	"github.com/blevesearch/snowballstem/spanish"
	"github.com/blevesearch/snowballstem/swedish"
	"github.com/blevesearch/snowballstem/turkish"
)

// A script is a writing system. Each language has one. Japanese and Chinese share han. The other characters of a text
// distinguish it from kana.
type script uint8

const (
	unwritten script = iota // neither letters nor ideographs
	latin
	cyrillic
	kana
	han
	hangul
)

// A tongue is a language in which questions can be asked.
type tongue struct {
	code   string
	script script
	stem   func(*snowballstem.Env) bool // nil: pairs of characters instead of stems
	elided string                       // articles that are joined to the next word with an apostrophe
	filler string                       // words of questions that do not change the answer; phrases where words are not separated
}

// tongues lists all languages. The order decides for texts that match several.
var tongues = []tongue{
	{"en", latin, porter.Stem, "", "please pls plz thanks thank thx hello hi hey dear tell know want wanna would like could can may might shall will help need explain wonder wondering find get got give let make possible able way just also really actually question information info us me im i'm i'd i've it's ok okay sorry sir madam today now something anything someone guys"},
	{"de", latin, german.Stem, "", "bitte danke hallo guten tag möchte möchten kann können könnte könnten würde gerne gern sagen wissen hilfe helfen brauche frage wie was wo wann ich mir gibt geht mal man"},
	{"fr", latin, french.Stem, "l m t qu n s j d c jusqu quoiqu lorsqu puisqu", "bonjour merci svp plaît plait voudrais veux peux puis peut pouvez dire savoir aide aider besoin question comment est-ce faire faut combien quand où"},
	{"es", latin, spanish.Stem, "", "hola gracias favor quiero quisiera puedo puede pueden podría decir saber ayuda necesito pregunta cómo qué hacer hay"},
	{"it", latin, italian.Stem, "c l all dall dell nell sull coll pell gl agl dagl degl negl sugl un m t s v d", "ciao grazie favore voglio vorrei posso può potete dire sapere aiuto domanda come fare"},
	{"pt", latin, portuguese.Stem, "", "olá obrigado obrigada favor quero queria posso pode podem dizer saber ajuda preciso pergunta como fazer"},
	{"nl", latin, dutch.Stem, "", "hallo dank bedankt alstublieft graag wil kan kunt kunnen zeggen weten hulp vraag hoe"},
	{"sv", latin, swedish.Stem, "", "hej tack snälla vill kan kunde säga veta hjälp fråga hur"},
	{"da", latin, danish.Stem, "", "hej tak venligst vil kan kunne sige vide hjælp spørgsmål hvordan"},
	{"no", latin, norwegian.Stem, "", "hei takk vennligst vil kan kunne si vite hjelp spørsmål hvordan"},
	{"fi", latin, finnish.Stem, "", "hei moi kiitos haluan voin voinko voiko sanoa tietää apua kysymys miten"},
	{"tr", latin, turkish.Stem, "", "merhaba teşekkürler lütfen istiyorum misiniz mısınız söyle yardım soru nasıl"},
	{"ru", cyrillic, russian.Stem, "", "здравствуйте привет спасибо пожалуйста хочу могу можно можете скажите подскажите помощь нужно вопрос как"},
	{"ja", kana, nil, "", "教 願 出来 場合 可能 方法 欲 下 知 思 何 質問 致 頂 御座 今日 私 時"},
	{"zh", han, nil, "", "请问 我想知道 我想 想知道 我要 我 你们 你 您 可以 怎么样 怎么办 怎么 怎样 什么 如何 能不能 不能 能否 告诉 谢谢 你好 您好 一下 吗 呢 吧 的"},
	{"ko", hangul, nil, "", "하고 싶습니다 싶어요 싶은데요 싶은데 합니다 합니까 하나요 할까요 하려면 해야 해요 하세요 되나요 됩니까 되요 돼요 있나요 있습니까 있어요 있을까요 알려주세요 알려 주세요 어떻게 인가요 입니까 이에요 예요 안녕하세요"},
}

// Languages returns the ISO 639-1 codes of all languages.
func Languages() []string {
	var codes []string
	for _, t := range tongues {
		codes = append(codes, t.code)
	}
	return codes
}

func lookup(code string) (tongue, bool) {
	i := slices.IndexFunc(tongues, func(t tongue) bool { return t.code == code })
	if i < 0 {
		return tongue{}, false
	}
	return tongues[i], true
}

// writtenIn reports whether the language may be written in a script.
func (t tongue) writtenIn(s script) bool {
	return t.script == s || s == unwritten || s == han && t.script == kana
}

// scriptOf returns the main script of a text. One kana makes it Japanese and one hangul syllable Korean, because brand
// names use Latin letters in every language. Otherwise a third of Chinese characters is enough for han.
func scriptOf(text string) script {
	var n [hangul + 1]int
	for _, r := range text {
		n[scriptOfRune(r)]++
	}
	switch {
	case n[kana] > 0:
		return kana
	case n[hangul] > 0:
		return hangul
	case n[han] > 0 && 2*n[han] >= n[latin]+n[cyrillic]:
		return han
	case n[cyrillic] > n[latin]:
		return cyrillic
	case n[latin] > 0:
		return latin
	}
	return unwritten
}

func scriptOfRune(r rune) script {
	switch {
	case r < unicode.MaxASCII:
		if unicode.IsLetter(r) {
			return latin
		}
	case unicode.In(r, unicode.Hiragana, unicode.Katakana):
		return kana
	case unicode.Is(unicode.Han, r):
		return han
	case unicode.Is(unicode.Hangul, r):
		return hangul
	case unicode.Is(unicode.Cyrillic, r):
		return cyrillic
	case unicode.Is(unicode.Latin, r):
		return latin
	}
	return unwritten
}

// plainCode returns the language code without the region: "pt" for "pt-BR".
func plainCode(tag string) string {
	code, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(tag)), "-")
	code, _, _ = strings.Cut(code, "_")
	switch code {
	case "nb", "nn":
		return "no"
	}
	return code
}

// Accepted returns the languages of an Accept-Language header, best first, for Find. Unknown languages are skipped.
func Accepted(header string) []string {
	type wish struct {
		code string
		q    float64
	}
	var wishes []wish
	for part := range strings.SplitSeq(header[:min(len(header), 1<<10)], ",") {
		tag, param, _ := strings.Cut(part, ";")
		q := 1.0
		if v, ok := strings.CutPrefix(strings.TrimSpace(param), "q="); ok {
			q, _ = strconv.ParseFloat(v, 64)
		}
		if _, known := lookup(plainCode(tag)); known && q > 0 {
			wishes = append(wishes, wish{plainCode(tag), q})
		}
	}
	slices.SortStableFunc(wishes, func(a, b wish) int { return cmp.Compare(b.q, a.q) })
	var codes []string
	for _, w := range wishes {
		if !slices.Contains(codes, w.code) {
			codes = append(codes, w.code)
		}
	}
	return codes
}
