"""Declines are told from answers as language models really put them."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_kit.text.citations.check import check_citations
from rag_kit.text.citations.decline import DECLINED, is_declined

EXAMPLES = Path(__file__).resolve().parents[2] / "support" / "citations"


def examples(kind: str, language: str) -> list[str]:
    return (EXAMPLES / f"{kind}_{language}.txt").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("language", ["en", "zh"])
def test_long_and_polite_declines_are_found(language: str) -> None:
    """At least 85% of refusals with apologies, advice and what the documents do contain are declines."""
    found = [is_declined(text) for text in examples("refusals", language)]
    assert sum(found) >= 0.85 * len(found)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_answers_that_negate_are_no_declines(language: str) -> None:
    """Answers made to be mistaken for declines ("was not in the documents of 1950", partial or polite) rarely are."""
    found = [is_declined(text) for text in examples("answers", language)]
    assert sum(found) <= 0.02 * len(found)


def test_short_declines_are_found() -> None:
    """Short and polite refusals name no source, and have their topic in the middle."""
    assert [answer for answer in examples("refusals", "short") if not is_declined(answer)] == []


def test_conditions_are_no_declines() -> None:
    """Rules, conditions and short answers begin as refusals do."""
    assert [answer for answer in examples("answers", "short") if is_declined(answer)] == []


@pytest.mark.parametrize(
    "part", ["[1] ", "the documents that you have ", "not, ", "i cannot ", "没有", "这", "我们这里", "关于我"]
)
def test_repeated_parts_end(part: str) -> None:
    """A text of one repeated part neither raises nor runs away."""
    assert is_declined(part * (3000 // len(part))) in (True, False)


@pytest.mark.parametrize(
    "answer",
    [
        *DECLINED.values(),
        "  **The answer is not in the documents**  ",
        "The answer is not contained in the provided passages.",
        "The provided documents do not contain this information.",
        "I could not find the answer in the given context.",
        "文档中没有答案",
        "根据提供的资料，文中未提及该信息。",
        "抱歉，提供的文档中没有相关信息。",
        "无法根据这些段落回答该问题。",
        "The filing does not disclose the effective tax rate for 2019.",
        "The exhibits provided do not contain the purchase price of the subsidiary.",
        "The evidence provided does not include the number of employees, which is needed to calculate the ratio.",
        "Revenue was $5.1 million. The filing gives no cost of sales. Therefore, the margin cannot be calculated.",
        "I read the two texts. The first covers leave, the second describes travel [1][2]. None of them says how long.",
        "The documentation covers keys and the audit log [1]. It gives no guidance on restoring a deleted key.",
        "The sources describe the grant [1]. The amount of the grant is never stated.",
        "To answer this, I would need the cash flow statement, which is not among the materials provided.",
        "I don't see anything in these passages about parking permits.",
        "Passage 1 is about the castle and passage 2 about its restoration; neither gives its height.",
        "Neither passage tells us who designed the garden.",
        "The documents concern the 2015 model. Nothing on the 2019 model appears in them.",
        "The dates of the exhibition aren't mentioned. The text is mainly about the artist's childhood [1].",
        "As the filing does not provide the exchange rate, the amount in euros can't be computed.",
        "The context gives the figures for Q1 and Q2, but Q3 is not among the reported quarters.",
        "The answer to this question is not provided.",
        "The excerpts stop short of explaining how the fee is calculated.",
        "This question falls outside the scope of the supplied documents.",
        "We are not told how old the child was.",
        "Only the dividends of 2019 and 2020 are given. As a result, it is not possible to say what was paid in 2022.",
        "Is the fee refundable? The documents do not say. Is there anything else I can help you with?",
        "合同中未约定违约金的数额，无从得知。",
        "给出的证据不足以判断这一说法是否属实。",
        "抱歉，我没办法根据这些内容回答您的问题，因为其中缺乏具体的价格信息。",
        "第三季度的数据未在所给报告中列出。",
        "没有任何段落提到座位数。",
        "虽然文档详细描述了博物馆的历史，包括1884年建馆[1]，但没有给出每年的参观人数。",
        "从文中无法看出是谁签署了这封信。",
        "您问的内容不在我掌握的文档之中。",
        "我在文档里没找到检查的日期。",
        "文件只列出了2022年和2023年的净利润，因此无法计算2021年的数据。",
        "该问题的答案不在给定的文档中。",
        "从现有材料来看，尚不足以判断该药物是否在儿童中做过试验。",
        "经查阅，所给文档里并没有写明供应商的名称。",
        "资料介绍了补助的申请方式[1]和各轮截止日期[2]，补助金额则未作说明。",
        "手册介绍了水泵的安装步骤[1]，也列出了电源要求[2]。但手册并未给出保养周期。",
        "文中虽然提到了几任市长，但没有指明1989年至1995年间由谁任职。",
        "Die Antwort ist nicht in den Dokumenten enthalten.",
        "Die Dokumente enthalten keine Informationen zu dieser Frage.",
        "Das steht nicht in den Unterlagen.",
        "Der Kontext beschreibt nur die Montage der Pumpe [1]. Wartungsintervalle werden nicht erwähnt.",
        "Die Quellen beschreiben den Antrag [1] und die Fristen [2]. Die Höhe der Förderung wird nicht genannt.",
        "Mir liegen keine Informationen zum Stammkapital der Gesellschaft vor.",
        "Keine der Textstellen nennt die Stornogebühr.",
        "Leider kann ich diese Frage anhand der vorliegenden Texte nicht beantworten.",
        "In den Unterlagen fehlen die Herstellungskosten.",
        "La réponse ne figure pas dans les documents.",
        "Les passages ne disent pas qui a payé la rénovation.",
        "No se especifica en el texto quién fue el autor.",
        "資料からは事故の原因を特定できません。",
        "La respuesta no se encuentra en los documentos.",
        "La risposta non è presente nei documenti.",
        "Svaret finns inte i dokumenten.",
        "Ответа нет в документах.",
        "答えは文書にありません。",
        "답은 문서에 없습니다.",
    ],
)
def test_declines_in_any_words_and_language(answer: str) -> None:
    """The lack may be a filing's, be concluded at the end, or be said in the language of the question."""
    assert is_declined(answer)
    assert check_citations(answer, ["The Rhine rises in Switzerland."]).status == "declined"


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "The Rhine rises in Switzerland [1].",
        "The treaty was not signed in Paris.",
        "The documents were destroyed in 1943.",
        "该书于1933年由开明书店出版，并未在北京印刷。[3]",
        "他没有参加会议。",
        "The answer is not in the documents, but see [1].",
        "The tower is 120 m high. The documents do not say when it was finished.",
        "The passages do not name the architect, but a plaque names Jonas Berg, so he was probably the architect.",
        "The last stop is Bern [1]. The documents do not say when the train arrives.",
        "While the context does not state it directly, the answer is Vienna.",
        "According to the article, it has never included a harbour.",
        "The passages state that there is no evidence of a second fire.",
        "这座桥由李明设计。文档没有给出建造年份。",
        "文档没有直接说明，但可以推断他于1947年去世。",
        "Die Garantie gilt nicht für Kalk.",
        "Die Dokumente müssen nicht beglaubigt werden.",
        "Der Vertrag wurde am 3. März 2021 verlängert [1]. Für wie lange, wird nicht angegeben.",
        "Eine Datei darf höchstens 200 MB groß sein [1]. Zu Archiven machen die Dokumente keine Angaben.",
        "Les documents ne doivent pas être signés.",
        "El documento no necesita firma.",
        "So the patient could not provide consent.",
        "Therefore the machine cannot be used above 40 degrees.",
        "员工不能提前离职，因此无法领取补偿金。",
        "系统无法确定用户身份时会退出。",
        "The evidence does not support a link between the two. [1]",
        "They don't see the report before it is published [2].",
        "The documents must not leave the building.",
        "该软件无法回答有关图像的问题。",
        "表格不要求填写收入。",
        "使用哪份表格都没有关系。",
    ],
)
def test_answers_are_no_declines(answer: str) -> None:
    """An answer may negate, add what the documents lack, conclude from them, or say what cannot be done."""
    assert not is_declined(answer)
