"""A collection like one of company filings, made by rule, and questions over it with the passages that answer them.

Every company files the same kinds of passages every year and every quarter, each names the years before it as well,
and only every third one names its company: words alone cannot tell them apart, metadata can.
"""

from __future__ import annotations

import random
from typing import Any

from langchain_core.documents import Document

YEARS = range(2016, 2024)
# name and sector; some names are ordinary words, and so are some sectors
COMPANIES = {
    "en": {
        "3T Labs": "Health Care", "Harbor": "Financials", "Corvane": "Energy", "Best Lantern": "Consumer Staples",
        "Halden & Sons": "Industrials", "JPX Holdings": "Financials", "Ulmo Foods": "Consumer Staples",
        "Northwind": "Energy", "Quarry": "Industrials", "Verano Pharma": "Health Care",
    },
    "zh": {
        "华岳能源": "能源", "金桥银行": "金融", "远山医药": "医药", "蓝海科技": "科技", "安泰": "金融",
        "东岭食品": "消费", "星河汽车": "制造", "瑞丰": "消费", "云图软件": "科技", "长林电力": "能源",
    },
}  # fmt: skip
NAMES = {
    "en": ("company", "fiscal_year", "doc_type", "quarter", "sector"),
    "zh": ("公司", "财年", "文件类型", "季度", "行业"),
}
KINDS = {"en": ("10-K", "10-Q"), "zh": ("年报", "季报")}
QUARTERS = {"en": ["Q1", "Q2", "Q3"], "zh": ["第一季度", "第二季度", "第三季度"]}
# topic of a passage: its text, the questions for a year, the questions for a quarter
TOPICS: dict[str, list[tuple[str, list[str], list[str]]]] = {
    "en": [
        (
            "Statement of cash flows. Capital expenditure, purchases of property and equipment, came to {a} million "
            "in {y}, {b} million in {p} and {c} million in {o}. These financial figures are unaudited.",
            ["What is the FY{y} capital expenditure amount (in USD millions) for {n}? Use the cash flow statement.",
             "How much did {n} spend on property and equipment in fiscal year {y}, going by its financial statements?"],
            ["How high was {n}'s capital expenditure in Q{q}{y}?"],
        ),
        (
            "Balance sheet. Inventories were {a} million at the end of {y}, {b} million at the end of {p}, and "
            "{c} million a year earlier. Financial position and liquidity remained sound.",
            ["As of {y}, what were {n}'s total inventories? Rely on the financial position shown.",
             "What inventories did {n} report as of FY{s}?"],
            ["What were the inventories of {n} at the end of Q{q} {y}?"],
        ),
        (
            "Segments. Sales of the first segment fell by {a} million in {y}, the largest decline; the second "
            "segment fell by {b} million in {p} and {c} million in {o}.",
            ["Which segment of {n} had the biggest drop in sales in FY{y}?",
             "How did {n}'s segment sales change between FY{p} and FY{y}?"],
            ["Which business had the biggest drop in {n}'s sales in the {w} quarter of {y}?"],
        ),
        (
            "Unusual transactions. In {y} a plant outside the ordinary course of business was sold for {a} million, "
            "after {b} million in {p} and {c} million in {o}.",
            ["Were there any transactions in FY{y} not in {n}'s standard business operations?",
             "What was sold outside the ordinary business of {n} in {y}?"],
            ["Were any plants sold in {y}Q{q} that are not in {n}'s standard business?"],
        ),
        (
            "Dividends. The board declared dividends of {a} million in {y}; {b} million had been paid in {p} and "
            "{c} million in {o}. Earnings cover the dividend.",
            ["Has {n} paid dividends to its shareholders in FY{y}?",
             "What dividends did {n} declare in {y}? Answer as a financial analyst would."],
            ["Did {n} declare a dividend in Q{q} of {y}?"],
        ),
    ],
    "zh": [
        (
            "现金流量表。{y}年资本开支为{a}百万元，{p}年为{b}百万元，{o}年为{c}百万元，用于购建厂房与设备。",
            ["{n}{y}财年的资本开支是多少？请依据现金流量表回答。", "{n}在FY{y}购建厂房与设备花了多少钱？"],
            ["{n}{y}年第{z}季度的资本开支有多高？"],
        ),
        (
            "资产负债表。{y}年末存货为{a}百万元，{p}年末为{b}百万元，{o}年末为{c}百万元。金融资产没有变化。",
            ["截至{y}年，{n}的存货有多少？", "截至{y}财年末，{n}的金融资产和存货是多少？"],
            ["{n}在{y}年{z}季度末的存货是多少？"],
        ),
        (
            "分部。第一分部的销售额在{y}年下降{a}百万元，降幅最大；{p}年第二分部下降{b}百万元，{o}年下降{c}百万元。",
            ["{y}财年{n}哪个分部的销售额下降最多？", "{n}的分部销售额从{p}年到{y}年有什么变化？"],
            ["{n}哪个分部在{y}Q{q}销售额降幅最大？"],
        ),
        (
            "非常项目。{y}年出售一座工厂，得款{a}百万元，不属于日常业务；{p}年为{b}百万元，{o}年为{c}百万元。",
            ["{y}年有哪些交易不属于{n}的日常业务？", "{n}在{y}年度出售了哪些工厂？"],
            ["{y}年第{z}季度有没有不在{n}日常业务之内的交易？"],
        ),
        (
            "股息。董事会宣布{y}年派发股息{a}百万元；{p}年派发{b}百万元，{o}年派发{c}百万元。",
            ["{n}在{y}财年有没有派发股息？", "{n}{y}年度的股息是多少？"],
            ["{n}在{y}年第{z}季度派发股息了吗？"],
        ),
    ],
}  # fmt: skip


def filings(language: str, seed: int = 3) -> tuple[list[Document], dict[str, str], dict[str, dict[str, int]]]:
    """Documents, questions by id, and grades of documents by question."""
    rng = random.Random(seed)
    company, year, kind, quarter, sector = NAMES[language]
    documents: list[Document] = []
    queries: dict[str, str] = {}
    grades: dict[str, dict[str, int]] = {}
    for name, its_sector in COMPANIES[language].items():
        for y in YEARS:
            for q in range(4):
                metadata: dict[str, Any] = {
                    company: name,
                    year: y,
                    sector: its_sector,
                    kind: KINDS[language][q > 0],
                }
                if q:
                    metadata[quarter] = QUARTERS[language][q - 1]
                for text, annual, quarterly in TOPICS[language]:
                    values = {letter: rng.randint(10, 900) for letter in "abc"}
                    values |= {"y": y, "p": y - 1, "o": y - 2, "s": f"{y % 100:02}", "q": q}
                    said = {"n": name, "w": ["", "first", "second", "third"][q], "z": ["", *"一二三"][q]}
                    body = text.format(**values)
                    body = f"{name}: {body}" if rng.random() < 0.34 else body
                    key = str(len(documents))
                    documents.append(Document(body, id=key, metadata=metadata))
                    if rng.random() < (0.1 if q else 0.3):
                        asked = rng.choice(quarterly if q else annual)
                        queries[key] = asked.format(**values, **said)
                        grades[key] = {key: 1}
    return documents, queries, grades
