"""Search in Chinese, which has no spaces: every two neighbouring characters are a word.

Sphinx 9.0 finds Chinese words with jieba, if that is installed, and none otherwise; it does not
split queries, and its script ends with an error, since there is no ChineseStemmer. Pairs of
characters need no dictionary, and page and query are cut in the same way: a page is found if it
has every pair of the query.
"""

import re
from typing import Any

from sphinx.search.zh import SearchChinese

_HAN = "\u3400-\u9fff"
_RUN = re.compile(f"[{_HAN}]+")


class PairSearch(SearchChinese):
    """Latin words as in English, Chinese in pairs of characters and single ones."""

    language_name = "English"  # whose stemmer its script asks for; there is none for Chinese
    js_splitter_code = """
var splitQuery = (query) => {
  const terms = [];
  for (const run of query.match(/[\\u3400-\\u9fff]+|[a-zA-Z0-9_]+/g) ?? []) {
    const characters = [...run];
    if (characters.length === 1 || run[0] < "\\u3400") terms.push(run);
    else characters.slice(1).forEach((next, i) => terms.push(characters[i] + next));
  }
  return terms;
};
"""

    def split(self, input: str) -> list[str]:
        """The words of a text, each as often as it occurs.

        >>> PairSearch({}).split("因果掩码 mask")
        ['因', '果', '掩', '码', '因果', '果掩', '掩码', 'mask']
        """
        runs = _RUN.findall(input)
        single = [character for run in runs for character in run]
        pairs = [run[i : i + 2] for run in runs for i in range(len(run) - 1)]
        return single + pairs + [word for word in super().split(input) if not _RUN.search(word)]

    def word_filter(self, stemmed_word: str) -> bool:
        """Single Chinese characters are words, single letters are not."""
        return bool(_RUN.fullmatch(stemmed_word)) or super().word_filter(stemmed_word)


def setup(app: Any) -> dict[str, bool]:
    """Register the language with Sphinx."""
    app.add_search_language(PairSearch)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
