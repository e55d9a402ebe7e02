// Reads and edits the text box of the configuration in the same way as a person does.

import type { Locator, Page } from "playwright-core";

export const codeBox = (page: Page): Locator =>
  page.getByRole("textbox", { name: "Text of the configuration file" });

export const codeText = (page: Page): Promise<string> =>
  codeBox(page).evaluate((box) =>
    [...box.querySelectorAll(".cm-line")].map(({ textContent }) => textContent).join("\n"),
  );

/** Replaces a part of the text: selects everything and pastes. */
export async function replaceCode(page: Page, part: string, by: string): Promise<void> {
  const text = await codeText(page);
  await codeBox(page).press("Control+a");
  await codeBox(page).evaluate(
    (box, pasted) => {
      const clipboardData = new DataTransfer();
      clipboardData.setData("text/plain", pasted);
      box.dispatchEvent(
        new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true, composed: true }),
      );
    },
    text.replace(part, () => by),
  );
}

/** Clicks before a part of the text that is in one line. */
export async function clickBefore(page: Page, part: string): Promise<void> {
  const { x, y } = await codeBox(page).evaluate((box, wanted) => {
    const texts = document.createTreeWalker(box, NodeFilter.SHOW_TEXT);
    for (let node = texts.nextNode(); node !== null; node = texts.nextNode()) {
      const at = node.textContent?.indexOf(wanted) ?? -1;
      if (at < 0) continue;
      const range = document.createRange();
      range.setStart(node, at);
      range.collapse();
      const { x, y, height } = range.getBoundingClientRect();
      return { x, y: y + height / 2 };
    }
    throw new Error(`There is no ${wanted} in the text.`);
  }, part);
  await page.mouse.click(x, y);
}
